/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* near-name.h: what counts as near, in which order, and what is left out. */

#include "near-name.h"

#include "cleanup.h"
#include "test.h"

static void offer_all(NearNames *names, const char *wanted, const char *const *offered) {
        near_names_init(names, wanted, strlen(wanted));
        for (; *offered; offered++)
                near_names_offer(names, *offered);
}

static void test_order(void **state) {
        static const char *const offered[] = { "zebra", "fsync_range", "_ZN3log5fsyncEv",
                                               "fsync", "fdatasync",   "fsync@@GLIBC_2.2.5",
                                               "sync",  NULL };
        NearNames names;

        offer_all(&names, "fsyncc", offered);
        assert_int_equal(names.n, 2);
        assert_string_equal(names.best[0].name, "fsync");
        assert_string_equal(names.best[1].name, "sync");

        offer_all(&names, "fsyn", offered);
        assert_string_equal(names.best[0].name, "fsync");
        assert_string_equal(names.best[1].name, "sync");
        assert_string_equal(names.best[2].name, "fsync_range");
        assert_string_equal(names.best[3].name, "_ZN3log5fsyncEv");
        assert_int_equal(names.n, 4);
}

static void test_full(void **state) {
        static const char *const offered[] = { "read5", "read4", "read3", "read2", "reed", NULL };
        NearNames names;

        offer_all(&names, "read", offered);
        assert_int_equal(names.n, NEAR_NAMES_N);
        assert_string_equal(names.best[0].name, "read5");
        assert_string_equal(names.best[3].name, "read2");
}

static void test_odd_names(void **state) {
        static const char *const offered[] = { "", "@@V", "rea\nd", "rea\xff", NULL };
        char longest[200];
        NearNames names;

        offer_all(&names, "read", offered);
        assert_int_equal(names.n, 0);

        memset(longest, 'r', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        near_names_offer(&names, longest);
        near_names_init(&names, longest, sizeof(longest) - 1);
        near_names_offer(&names, "rrrr");
        near_names_offer(&names, longest);
        assert_int_equal(names.n, 1);
        assert_string_equal(names.best[0].name, "rrrr");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_full),
                cmocka_unit_test(test_odd_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
