/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * sentence.h: which bytes may be shown as they are, and that the rest is escaped wherever it comes
 * from.
 */

#include "base/sentence.h"

#include "test.h"

static void test_printable(void **state) {
        static const char *const good[] = {
                "", "nginx", "a b", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\xa7"
        };
        static const char *const bad[] = {
                "a\nb",     "\x1b[31m", "\x7f",         "\xff",         "\xc3",
                "\xc3(",    "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                "\xc2\x85", "\x80",     "\xf8\x88",     "\xe2\x82",     "\xe2\x80\xae",
        };

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                assert_true(text_is_printable(good[i]));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_false(text_is_printable(bad[i]));
}

static void test_escape(void **state) {
        _cleanup_free_ char *s = text_escape("a\n\xff\xc3\xa9\xc3");

        assert_string_equal(s, "a\\x0a\\xff\xc3\xa9\\xc3");
        assert_true(text_is_printable(s));
}

static void test_error(void **state) {
        _cleanup_free_ char *error = NULL;

        assert_int_equal(sentence_error(-ENOENT, &error, "No '%s' here", "x\ry"), -ENOENT);
        assert_string_equal(error, "No 'x\\x0dy' here");
        assert_int_equal(sentence_error(-ENOENT, NULL, "No '%s' here", "x"), -ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_printable),
                cmocka_unit_test(test_escape),
                cmocka_unit_test(test_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
