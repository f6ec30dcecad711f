/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* wrap.h: where lines end, and that nothing is lost but the spaces there. */

#include "wrap.h"

#include "base/cleanup.h"
#include "test.h"

static void test_lines(void **state) {
        static const struct {
                const char *text;
                size_t width;
                const char *lines;
        } cases[] = {
                { "", 5, "" },
                { "nginx", 5, "nginx" },
                { "nginx.service", 8, "nginx.\nservice" },
                { "nginx.service/request", 14, "nginx.service/\nrequest" },
                { "nginx.service/request", 20, "nginx.service/\nrequest" },
                { "preempted by cc1[812]", 14, "preempted by\ncc1[812]" },
                { "preempted by cc1[812]", 12, "preempted by\ncc1[812]" },
                { "preempted by cc1[812]", 9, "preempted\nby\ncc1[812]" },
                { "a  b", 1, "a\nb" },
                /* A joint that would leave most of the line empty is none. */
                { "a.bcdefghijklm", 9, "a.bcdefgh\nijklm" },
                { "abcdefghijklm", 5, "abcde\nfghij\nklm" },
                { "\u00fcber\u00fcber", 4, "\u00fcber\n\u00fcber" },
                { "abc", 1, "a\nb\nc" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *lines = text_wrap(cases[i].text, cases[i].width);

                assert_string_equal(lines, cases[i].lines);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
