/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * duration.h: what parses and to which value, what is refused and how, and that the exact form
 * always parses back to the same number of nanoseconds.
 */

#include "base/duration.h"

#include <errno.h>

#include "base/cleanup.h"
#include "test.h"

static void test_parse(void **state) {
        static const struct {
                const char *text;
                uint64_t ns;
        } cases[] = {
                { "0", 0 },
                { "1ns", 1 },
                { "250us", 250000 },
                { "250 usec", 250000 },
                { "3\xc2\xb5s", 3000 },
                { "3\xce\xbcs", 3000 },
                { "1.5ms", 1500000 },
                { ".5ms", 500000 },
                { "2s", 2 * NSEC_PER_SEC },
                { "2", 2 * NSEC_PER_SEC },
                { " 2 ", 2 * NSEC_PER_SEC },
                { "0.000000001", 1 },
                { "0.0000000019s", 1 },
                { "1.0000000000000000000000000009s", NSEC_PER_SEC },
                { "1min 30s", 90 * NSEC_PER_SEC },
                { "1min30s", 90 * NSEC_PER_SEC },
                { "1min 30", 90 * NSEC_PER_SEC },
                { "1 500ms", 1500 * NSEC_PER_MSEC },
                { "5 ", 5 * NSEC_PER_SEC },
                { "1min30 s", 90 * NSEC_PER_SEC },
                { "30s 1m", 90 * NSEC_PER_SEC },
                { "2hours 1 hr 1h 1 minute", 4 * NSEC_PER_HOUR + NSEC_PER_MINUTE },
                { "18446744073709551614ns", UINT64_MAX - 1 },
                { "infinity", DURATION_INFINITY },
                { " infinity\t", DURATION_INFINITY },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t ns = 4711;

                assert_ok(duration_parse(cases[i].text, &ns));
                assert_int_equal(ns, cases[i].ns);
        }
}

static void test_parse_refuses(void **state) {
        static const struct {
                const char *text;
                int error;
        } cases[] = {
                { "", -EINVAL },
                { "  ", -EINVAL },
                { "ms", -EINVAL },
                { "-5ms", -EINVAL },
                { "+5ms", -EINVAL },
                { "5.ms", -EINVAL },
                { ".", -EINVAL },
                { "1.2.3", -EINVAL },
                { "5 parsecs", -EINVAL },
                { "5MS", -EINVAL },
                { "1d", -EINVAL },
                { "0x10ms", -EINVAL },
                { "1e3ms", -EINVAL },
                { "5ms,", -EINVAL },
                { "infinity 1s", -EINVAL },
                { "infinityx", -EINVAL },
                { "5m\x80s", -EINVAL },
                { "1ms1", -EBADMSG },
                { "1h30", -EBADMSG },
                { "1min 1ms.5", -EBADMSG },
                { "1 ms1 ", -EBADMSG },
                { "1ms1 1ms", -EBADMSG },
                { "18446744073709551615ns", -ERANGE },
                { "18446744073709551616ns", -ERANGE },
                { "99999999999999999999", -ERANGE },
                { "5124096h", -ERANGE },
                { "18446744073709551614ns 2ns", -ERANGE },
                { "18446744073.9s", -ERANGE },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t ns = 4711;

                assert_int_equal(duration_parse(cases[i].text, &ns), cases[i].error);
                assert_int_equal(ns, 4711);
        }
}

static void test_format(void **state) {
        static const struct {
                uint64_t ns;
                const char *text;
        } cases[] = {
                { 0, "0" },
                { 1, "1ns" },
                { 1000, "1us" },
                { 1001, "1.001us" },
                { 250000, "250us" },
                { 1500000, "1.5ms" },
                { 5000000, "5ms" },
                { 1000000001, "1.000000001s" },
                { 90 * NSEC_PER_SEC, "1min 30s" },
                { NSEC_PER_HOUR, "1h" },
                { NSEC_PER_HOUR + 1, "1h 1ns" },
                { 2 * NSEC_PER_HOUR + NSEC_PER_MINUTE, "2h 1min" },
                { UINT64_MAX - 1, "5124095h 34min 33.709551614s" },
                { DURATION_INFINITY, "infinity" },
        };
        char buf[DURATION_MAX];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_string_equal(duration_format(cases[i].ns, buf), cases[i].text);
}

static void test_format_parses_back(void **state) {
        uint64_t v = 1;

        for (unsigned i = 0; i < 20000; i++) {
                char buf[DURATION_MAX];
                uint64_t ns = v >> (i % 64), back;

                assert_ok(duration_parse(duration_format(ns, buf), &back));
                assert_int_equal(back, ns);
                v = v * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        }
}

static void test_format_short(void **state) {
        static const struct {
                uint64_t ns;
                const char *text;
        } cases[] = {
                { 0, "0ns" },
                { 999, "999ns" },
                { 1000, "1.0us" },
                { 250000, "250us" },
                { 99949, "99.9us" },
                { 99950, "100us" },
                { 999499, "999us" },
                { 999500, "1.0ms" },
                { 5000000, "5.0ms" },
                { 4996000, "5.0ms" },
                { 15300000, "15.3ms" },
                { 999999999, "1.0s" },
                { 59900000000, "59.9s" },
                { 59960000000, "1min" },
                { 90 * NSEC_PER_SEC, "1min 30s" },
                { NSEC_PER_HOUR, "1h 0min" },
                { DURATION_INFINITY, "infinity" },
        };
        char buf[DURATION_MAX];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_string_equal(duration_format_short(cases[i].ns, buf), cases[i].text);
}

static void test_format_like(void **state) {
        char buf[DURATION_MAX];

        assert_string_equal(duration_format_like(200000, 5000000, buf), "0.2ms");
        assert_string_equal(duration_format_like(0, 5000000, buf), "0.0ms");
        assert_string_equal(duration_format_like(12, 800, buf), "12ns");
        assert_string_equal(duration_format_like(61 * NSEC_PER_SEC, 90 * NSEC_PER_SEC, buf),
                            "61.0s");
        assert_string_equal(duration_format_like(UINT64_MAX - 1, UINT64_MAX - 1, buf),
                            "18446744074s");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),        cmocka_unit_test(test_parse_refuses),
                cmocka_unit_test(test_format),       cmocka_unit_test(test_format_parses_back),
                cmocka_unit_test(test_format_short), cmocka_unit_test(test_format_like),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
