/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* base/strings.h: lists that grow, are copied and compared, and the empty ones. */

#include "base/strings.h"

#include "test.h"

static char a[] = "a", b[] = "b", c[] = "c", d[] = "d";
static char *const abc[] = { a, b, c, NULL };
static char *const abd[] = { a, b, d, NULL };
static char *const ab[] = { a, b, NULL };
static char *const none[] = { NULL };

static void test_append(void **state) {
        _cleanup_(strings_freep) char **strings = NULL;
        char s[] = "a";

        assert_ok(strings_append(&strings, s));
        s[0] = 'x';
        assert_string_equal(strings[0], "a");
        assert_null(strings[1]);
        assert_ok(strings_append(&strings, "b"));
        assert_ok(strings_append(&strings, "c"));
        assert_int_equal(strings_count(strings), 3);
        assert_true(strings_equal(strings, abc));
}

static void test_equal(void **state) {
        assert_true(strings_equal(abc, abc));
        assert_false(strings_equal(abc, abd));
        assert_false(strings_equal(abc, ab));
        assert_false(strings_equal(ab, abc));
        assert_false(strings_equal(abc, NULL));
        assert_false(strings_equal(NULL, abc));
        assert_true(strings_equal(NULL, NULL));
        assert_true(strings_equal(NULL, none));
        assert_true(strings_equal(none, NULL));
}

static void test_copy(void **state) {
        _cleanup_(strings_freep) char **copy = NULL, **empty = NULL, **nothing = NULL;

        assert_ok(strings_copy(abc, &copy));
        assert_true(strings_equal(copy, abc));
        assert_ptr_not_equal(copy[0], abc[0]);
        assert_ok(strings_copy(none, &empty));
        assert_non_null(empty);
        assert_null(empty[0]);
        assert_ok(strings_copy(NULL, &nothing));
        assert_null(nothing);
}

static void test_count(void **state) {
        assert_int_equal(strings_count(NULL), 0);
        assert_int_equal(strings_count(none), 0);
        assert_int_equal(strings_count(abc), 3);
        assert_null(strings_free(NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_append),
                cmocka_unit_test(test_equal),
                cmocka_unit_test(test_copy),
                cmocka_unit_test(test_count),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
