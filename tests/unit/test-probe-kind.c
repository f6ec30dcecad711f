/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "elf/probe-kind.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "test.h"

#define assert_kind(expected, nops, ...)                                                           \
        do {                                                                                       \
                static const uint8_t code[] = { __VA_ARGS__ };                                     \
                                                                                                   \
                assert_int_equal(probe_kind_of_code(code, sizeof(code), nops), expected);          \
        } while (0)

static void test_emulated(void **state) {
        assert_kind(PROBE_EMULATED, PROBE_NOPS_SHORT, 0x55);                    /* push %rbp */
        assert_kind(PROBE_EMULATED, PROBE_NOPS_SHORT, 0x41, 0x54);              /* push %r12 */
        assert_kind(PROBE_EMULATED, PROBE_NOPS_SHORT, 0xeb, 0x10);              /* jmp */
        assert_kind(PROBE_EMULATED, PROBE_NOPS_SHORT, 0xe9, 0, 0, 0, 0);        /* jmp */
        assert_kind(PROBE_EMULATED, PROBE_NOPS_SHORT, 0xf2, 0xe9, 0, 0, 0, 0);  /* bnd jmp */
        assert_kind(PROBE_EMULATED, PROBE_NOPS_SHORT, 0xe8, 0, 0, 0, 0);        /* call */
        assert_kind(PROBE_EMULATED, PROBE_NOPS_SHORT, 0x74, 0x10);              /* je */
        assert_kind(PROBE_EMULATED, PROBE_NOPS_SHORT, 0x0f, 0x84, 0, 0, 0, 0);  /* je */
        assert_kind(PROBE_EMULATED, PROBE_NOPS_SHORT, 0x90);                    /* nop */
        assert_kind(PROBE_EMULATED, PROBE_NOPS_SHORT, 0x66, 0x90);              /* xchg %ax, %ax */
        assert_kind(PROBE_EMULATED, PROBE_NOPS_CALL_5, 0x0f, 0x1f, 0x40, 0x00); /* nop of 4 bytes */
        assert_kind(PROBE_EMULATED, PROBE_NOPS_CALL_5, 0x66, 0x0f, 0x1f, 0x44, 0x00,
                    0x00); /* of 6 */
}

static void test_stepped(void **state) {
        assert_kind(PROBE_STEPPED, PROBE_NOPS_CALL_10, 0x5d);                   /* pop %rbp */
        assert_kind(PROBE_STEPPED, PROBE_NOPS_CALL_10, 0xf3, 0x0f, 0x1e, 0xfa); /* endbr64 */
        assert_kind(PROBE_STEPPED, PROBE_NOPS_CALL_10, 0x48, 0x89, 0xe5);       /* mov %rsp, %rbp */
        assert_kind(PROBE_STEPPED, PROBE_NOPS_CALL_10, 0xff, 0x25, 0, 0, 0, 0); /* jmp *(%rip) */
        assert_kind(PROBE_STEPPED, PROBE_NOPS_CALL_10, 0x0f, 0x05);             /* syscall */
        assert_kind(PROBE_STEPPED, PROBE_NOPS_CALL_10, 0x41, 0x5c);             /* pop %r12 */
}

/* Those that take anything else from the stack are stepped. */
static void test_return(void **state) {
        assert_kind(PROBE_RETURN, PROBE_NOPS_CALL_10, 0xc3);            /* ret */
        assert_kind(PROBE_RETURN, PROBE_NOPS_SHORT, 0xf3, 0xc3);        /* repz ret */
        assert_kind(PROBE_RETURN, PROBE_NOPS_SHORT, 0xf2, 0xc3);        /* bnd ret */
        assert_kind(PROBE_STEPPED, PROBE_NOPS_SHORT, 0xc2, 0x08, 0x00); /* ret $8 */
        assert_kind(PROBE_STEPPED, PROBE_NOPS_SHORT, 0xcb);             /* lret */
        assert_kind(PROBE_STEPPED, PROBE_NOPS_SHORT, 0x66, 0xc3);       /* retw */
        assert_kind(PROBE_STEPPED, PROBE_NOPS_SHORT, 0xf3);
}

/* Before Linux 6.18 it is an instruction like any other. */
static void test_nop_of_five(void **state) {
        assert_kind(PROBE_OPTIMISED, PROBE_NOPS_CALL_5, 0x0f, 0x1f, 0x44, 0x00, 0x00);
        assert_kind(PROBE_STEPPED, PROBE_NOPS_SHORT, 0x0f, 0x1f, 0x44, 0x00, 0x00);
        assert_kind(PROBE_STEPPED, PROBE_NOPS_SHORT, 0x0f, 0x1f, 0x40, 0x00);
}

/* What usdt.h of libbpf writes behind a nop, and Linux 7.2 replaces. */
static void test_nop_of_ten(void **state) {
#define NOP10 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00
        assert_kind(PROBE_OPTIMISED, PROBE_NOPS_CALL_10, NOP10);
        assert_kind(PROBE_UNKNOWN, PROBE_NOPS_CALL_5, NOP10);
        assert_kind(PROBE_UNKNOWN, PROBE_NOPS_SHORT, NOP10);
        assert_kind(PROBE_EMULATED, PROBE_NOPS_CALL_10, 0x90, NOP10);
        /* That of five bytes is an ordinary one then. */
        assert_kind(PROBE_EMULATED, PROBE_NOPS_CALL_10, 0x0f, 0x1f, 0x44, 0x00, 0x00);
        /* As long, but none that the kernel writes. */
        assert_kind(PROBE_STEPPED, PROBE_NOPS_CALL_10, 0x66, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00,
                    0x00, 0x00, 0x00);
}

/* LOCK, CS, SS; the other segments are those of threads and of the kernel. */
static void test_refused(void **state) {
        assert_kind(PROBE_UNKNOWN, PROBE_NOPS_CALL_10, 0xf0, 0x48, 0x0f, 0xb1, 0x0a);
        assert_kind(PROBE_UNKNOWN, PROBE_NOPS_CALL_10, 0x2e, 0x90);
        assert_kind(PROBE_UNKNOWN, PROBE_NOPS_CALL_10, 0x3e, 0xff, 0xe0);
        assert_kind(PROBE_STEPPED, PROBE_NOPS_CALL_10, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0);
        assert_true(probe_code_is_refused((const uint8_t[]) { 0x66, 0x36, 0x90 }, 3,
                                          PROBE_NOPS_CALL_10));
}

/* Branches with operands of 16 bits, by whatever prefixes. */
static void test_short_branches(void **state) {
        assert_kind(PROBE_UNKNOWN, PROBE_NOPS_CALL_10, 0x66, 0xe8, 0x00, 0x00); /* callw */
        assert_kind(PROBE_UNKNOWN, PROBE_NOPS_SHORT, 0x66, 0x48, 0xe8, 0, 0, 0, 0);
        assert_kind(PROBE_UNKNOWN, PROBE_NOPS_SHORT, 0x66, 0x0f, 0x84, 0x00, 0x00);
        assert_true(probe_code_is_refused((const uint8_t[]) { 0x66, 0x66, 0x48, 0xe8, 0 }, 5,
                                          PROBE_NOPS_CALL_5));
        assert_false(probe_code_is_refused((const uint8_t[]) { 0x66, 0x90 }, 2, PROBE_NOPS_CALL_5));
}

#ifdef __x86_64__

static ProbeHarm harm_of(const uint8_t code[static 8]) {
        int fd = memfd_create("code", MFD_CLOEXEC);
        ProbeHarm harm;

        assert_true(fd >= 0);
        assert_int_equal(write(fd, code, 8), 8);
        harm = probe_harm_at(fd, 0);
        (void) close(fd);
        return harm;
}

/* What the kernel (6.18) was seen to do in place of these. */
static void test_mistaken(void **state) {
        static const uint8_t mistaken[][8] = {
                { 0xc5, 0xf9, 0x7f, 0x07 },             /* vmovdqa %xmm0, (%rdi): a jump */
                { 0x62, 0xe2, 0x7d, 0x48, 0x7a, 0xc6 }, /* vpbroadcastb: a jump */
                { 0xc5, 0xf8, 0xc2, 0xc1, 0x00 },       /* vcmpeqps: a return */
                { 0xc4, 0xe2, 0x79, 0x9d, 0xc1 },       /* vfnmadd132ss: popf */
                { 0x49, 0x90 },                         /* xchg %rax, %r8: nothing */
                { 0x66, 0x41, 0x90 },                   /* xchg %ax, %r8w */
        };
        static const uint8_t right[][8] = {
                { 0x90 },
                { 0x66, 0x90 },
                { 0xf3, 0x90 },
                { 0x48, 0x90 },
                { 0x41, 0x50 },
                { 0x55 },
                { 0xf3, 0x0f, 0x1e, 0xfa },
        };

        for (size_t i = 0; i < sizeof(mistaken) / sizeof(*mistaken); i++) {
                assert_int_equal(harm_of(mistaken[i]), PROBE_ON_MISTAKEN);
                assert_int_equal(probe_kind_of_code(mistaken[i], 8, PROBE_NOPS_SHORT),
                                 PROBE_UNKNOWN);
        }
        for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++)
                assert_int_equal(harm_of(right[i]), PROBE_HARMLESS);
}

#endif

static void test_nop_of_nine(void **state) {
#define NOP9 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00
        assert_kind(PROBE_EMULATED, PROBE_NOPS_CALL_10, NOP9);
        assert_kind(PROBE_STEPPED, PROBE_NOPS_CALL_5, NOP9);
        assert_kind(PROBE_EMULATED, PROBE_NOPS_CALL_5, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00,
                    0x00);
}

static void test_cut(void **state) {
        assert_int_equal(probe_kind_of_code(NULL, 0, PROBE_NOPS_CALL_10), PROBE_UNKNOWN);
        assert_kind(PROBE_STEPPED, PROBE_NOPS_CALL_10, 0x0f);
        assert_kind(PROBE_STEPPED, PROBE_NOPS_CALL_10, 0x41);
        assert_kind(PROBE_STEPPED, PROBE_NOPS_CALL_10, 0x66);
        assert_int_equal(probe_kind_at(-EBADF, 0), PROBE_UNKNOWN);
}

static void assert_cost(ProbeKind kind, const ProbePrices *prices, const char *expected) {
        _cleanup_free_ char *cost = probe_kind_describe_cost(kind, prices);

        assert_string_equal(cost, expected);
}

/* What is known of this machine, and of another one. */
static void test_costs(void **state) {
        const ProbePrices here = {
                .ns = { [PROBE_EMULATED] = 620, [PROBE_RETURN] = 22300, [PROBE_STEPPED] = 22400 }
        };
        const ProbePrices at_once = { .ns[PROBE_RETURN] = 630, .returns_at_once = true };

        assert_null(probe_kind_describe_cost(PROBE_UNKNOWN, NULL));
        assert_cost(PROBE_STEPPED, NULL, "6 to 11 us (single-stepped)");
        assert_cost(PROBE_STEPPED, &here, "22 us (single-stepped)");
        assert_cost(PROBE_EMULATED, &here, "0.6 us");
        assert_cost(PROBE_OPTIMISED, &here, "0.2 to 0.6 us");
        assert_cost(PROBE_RETURN, NULL, "6 to 11 us (single-stepped)");
        assert_cost(PROBE_RETURN, &here, "22 us (single-stepped)");
        assert_cost(PROBE_RETURN, &at_once, "0.6 us");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_emulated),    cmocka_unit_test(test_stepped),
                cmocka_unit_test(test_nop_of_five), cmocka_unit_test(test_nop_of_ten),
                cmocka_unit_test(test_nop_of_nine), cmocka_unit_test(test_refused),
                cmocka_unit_test(test_cut),         cmocka_unit_test(test_costs),
                cmocka_unit_test(test_return),      cmocka_unit_test(test_short_branches),
#ifdef __x86_64__
                cmocka_unit_test(test_mistaken),
#endif
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
