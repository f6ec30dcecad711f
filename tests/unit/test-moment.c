/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* moment.h: every way to write a moment; what is none, or not in the past. */

#include "moment.h"

#include <stdlib.h>
#include <time.h>

#include "test.h"

#include "base/cleanup.h"

#define SEC    UINT64_C(1000000)
#define HOUR   (3600 * SEC)
#define DAY    (24 * HOUR)
#define NOON   (1795608000 * SEC) /* 2026-11-25 12:00:00 UTC */
#define NOW    (NOON + 1500000)
#define MIDDAY (NOON - 12 * HOUR)

static void test_moments(void **state) {
        static const struct {
                const char *text;
                uint64_t usec;
        } cases[] = {
                { "now", NOW },
                { "today", MIDDAY },
                { "yesterday", MIDDAY - DAY },
                { "@1795608000", NOON },
                { "@0", 0 },
                { "2026-11-25", MIDDAY },
                { "2026-11-24 09:30", MIDDAY - DAY + 9 * HOUR + HOUR / 2 },
                { "2026-11-24 09:30:15", MIDDAY - DAY + 9 * HOUR + HOUR / 2 + 15 * SEC },
                { "2026-11-24T09:30:15", MIDDAY - DAY + 9 * HOUR + HOUR / 2 + 15 * SEC },
                { "11:00", NOON - HOUR },
                { "11:00:30", NOON - HOUR + 30 * SEC },
                { "1h", NOW - HOUR },
                { "-1h", NOW - HOUR },
                { "1h ago", NOW - HOUR },
                { "1h 30min ago", NOW - HOUR - HOUR / 2 },
                { "90", NOW - 90 * SEC },
                { "2d", NOW - 2 * DAY },
                { "-2days", NOW - 2 * DAY },
                { "1 week ago", NOW - 7 * DAY },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t usec = 1;

                assert_ok(moment_parse(cases[i].text, NOW, &usec));
                assert_int_equal(usec, cases[i].usec);
        }
}

static void test_bad(void **state) {
        static const struct {
                const char *text;
                int error;
        } cases[] = {
                { "", -EINVAL },
                { "soon", -EINVAL },
                { "infinity", -EINVAL },
                { "-", -EINVAL },
                { "--1h", -EINVAL },
                { "-1h ago", -EINVAL },
                { "ago", -EINVAL },
                { " ago", -EINVAL },
                { "1y", -EINVAL },
                { "@", -EINVAL },
                { "@1x", -EINVAL },
                { "@-1", -EINVAL },
                { "2026-13-01", -EINVAL },
                { "2026-11-24x", -EINVAL },
                { "25:00", -EINVAL },
                { "2026-11-26", -ERANGE },
                { "12:01", -ERANGE },
                { "@1795608002", -ERANGE },
                { "@99999999999999999999", -ERANGE },
                { "100000d", -ERANGE },
                { "99999999999999999999d", -EINVAL },
                { "999999999999999w", -ERANGE },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t usec = 1;

                assert_int_equal(moment_parse(cases[i].text, NOW, &usec), cases[i].error);
                assert_int_equal(usec, 1);
        }
}

/* A day with a change of the clocks is no 24 hours. */
static void test_local(void **state) {
        uint64_t usec;

        assert_int_equal(setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1), 0);
        tzset();
        assert_ok(moment_parse("2026-10-25", NOW, &usec));
        assert_int_equal(usec, UINT64_C(1792879200) * SEC);
        assert_ok(moment_parse("2026-10-26", NOW, &usec));
        assert_int_equal(usec, UINT64_C(1792879200) * SEC + 25 * HOUR);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_moments),
                cmocka_unit_test(test_bad),
                cmocka_unit_test(test_local),
        };

        if (setenv("TZ", "UTC", 1) < 0)
                return EXIT_FAILURE;
        tzset();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
