/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Functions in a few bytes, with one way out, none, and several. */

#include "function-return.h"

#include "cleanup.h"
#include "test.h"

#if defined(__x86_64__)

#define RET 0xc3

static void assert_returns_at(const uint8_t *code, size_t size, size_t expected) {
        const char *reason = NULL;
        size_t offset;

        assert_ok(function_find_return(code, size, &offset, &reason));
        assert_int_equal(offset, expected);
}

static void assert_refused(const uint8_t *code, size_t size, const char *expected) {
        const char *reason = NULL;
        size_t offset = 4711;

        assert_int_equal(function_find_return(code, size, &offset, &reason), -EOPNOTSUPP);
        assert_string_equal(reason, expected);
        assert_int_equal(offset, 4711);
}

#define RETURNS_AT(expected, ...)                                                                  \
        assert_returns_at((const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }),    \
                          expected)
#define REFUSED(expected, ...)                                                                     \
        assert_refused((const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }),       \
                       expected)

static void test_one_return(void **state) {
        RETURNS_AT(0, RET);
        RETURNS_AT(1, 0x90, RET);
        RETURNS_AT(4, 0xf3, 0x0f, 0x1e, 0xfa, RET);       /* endbr64 */
        RETURNS_AT(1, 0x90, 0xf3, RET);                   /* rep ret */
        RETURNS_AT(2, 0x75, 0x00, RET);                   /* jne to the return */
        RETURNS_AT(0, RET, 0x90, 0xeb, 0xfc);             /* the rest jumps back to it */
        RETURNS_AT(5, 0xe8, 0x00, 0x01, 0x00, 0x00, RET); /* a call elsewhere */
        RETURNS_AT(2, 0xff, 0xd0, RET);                   /* call *%rax */
        RETURNS_AT(0, 0xc2, 0x08, 0x00);                  /* ret $8 */
        RETURNS_AT(2, 0x31, 0xc0, RET, 0xe8, 0, 1, 0, 0, 0x0f, 0x0b); /* and a cold end: ud2 */
}

static void test_other_ways(void **state) {
        REFUSED("never returns", 0x90);
        REFUSED("never returns", 0x0f, 0x0b);
        REFUSED("returns at several places", 0x75, 0x01, RET, RET);
        REFUSED("can be left by a jump", RET, 0xe9, 0x00, 0x10, 0x00, 0x00); /* tail call */
        REFUSED("can be left by a jump", 0x75, 0x10, RET);                   /* to a cold part */
        REFUSED("can be left by a jump", 0xeb, 0x01, RET);                   /* just behind it */
        REFUSED("can be left by a jump", 0x90, 0xeb, 0xf0, RET);             /* before it */
        REFUSED("jumps to places that are only known when it runs", 0xff, 0xe0,
                RET); /* jmp *%rax */
        REFUSED("jumps to places that are only known when it runs", 0xff, 0x24, 0xc5, 0, 0, 0, 0,
                RET); /* a jump table */
        REFUSED("calls itself", 0x90, 0xe8, 0xfa, 0xff, 0xff, 0xff, RET);
}

static void test_no_code(void **state) {
        REFUSED("has bytes that are not instructions", 0x06, RET); /* not in 64-bit mode */
        REFUSED("has bytes that are not instructions", RET, 0xe8); /* cut */
        assert_refused(NULL, 0, "never returns");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_return),
                cmocka_unit_test(test_other_ways),
                cmocka_unit_test(test_no_code),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* Elsewhere nothing is read. */
static void test_elsewhere(void **state) {
        const char *reason;
        size_t offset;

        assert_int_equal(function_find_return(NULL, 0, &offset, &reason), -EOPNOTSUPP);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_elsewhere) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
