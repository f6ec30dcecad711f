/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* binding/rate-limit.h: how many pass in an interval, when it begins, and what is no limit. */

#include "binding/rate-limit.h"

#include "base/cleanup.h"
#include "binding/binding.h"
#include "test.h"

#define INTERVAL UINT64_C(1000)
#define BURST    3

/* How many of n pass at that time. */
static unsigned admit(RateLimit *limit, unsigned n, uint64_t now_ns) {
        unsigned passed = 0;

        for (unsigned i = 0; i < n; i++)
                passed += rate_limit_admit(limit, INTERVAL, BURST, now_ns);
        return passed;
}

static void test_burst(void **state) {
        RateLimit limit = {};

        assert_int_equal(admit(&limit, 10, 5000), BURST);
        assert_int_equal(admit(&limit, 10, 5000 + INTERVAL - 1), 0);
}

/* The first decides, not the last, and not one that was held back. */
static void test_interval_begins_with_the_first(void **state) {
        RateLimit limit = {};

        assert_int_equal(admit(&limit, 1, 5000), 1);
        assert_int_equal(admit(&limit, 9, 5900), BURST - 1);
        assert_int_equal(admit(&limit, 1, 5999), 0);
        assert_int_equal(admit(&limit, 1, 6000), 1);
        /* Not at the next multiple: the interval began with the one above. */
        assert_int_equal(admit(&limit, 9, 6999), BURST - 1);
        assert_int_equal(admit(&limit, 9, 7000), BURST);
}

/* Nothing is saved up in quiet times. */
static void test_quiet_time(void **state) {
        RateLimit limit = {};

        assert_int_equal(admit(&limit, 1, 5000), 1);
        assert_int_equal(admit(&limit, 99, 5000 + 100 * INTERVAL), BURST);
}

/* A clock near zero: an empty limit has no interval that runs. */
static void test_first_moments(void **state) {
        RateLimit limit = {};

        assert_int_equal(admit(&limit, 9, 1), BURST);
        assert_int_equal(admit(&limit, 9, INTERVAL), 0);
        assert_int_equal(admit(&limit, 9, INTERVAL + 1), BURST);
}

static void test_no_limit(void **state) {
        RateLimit limit = {};

        for (unsigned i = 0; i < 100; i++) {
                assert_true(rate_limit_admit(&limit, 0, BURST, 5000));
                assert_true(rate_limit_admit(&limit, INTERVAL, 0, 5000));
        }
        /* Set by a reload, it counts from then on. */
        assert_int_equal(admit(&limit, 9, 5000), BURST);
}

/* A reload can change it while an interval runs. */
static void test_changed_limit(void **state) {
        RateLimit limit = {};

        assert_int_equal(admit(&limit, 9, 5000), BURST);
        assert_true(rate_limit_admit(&limit, INTERVAL, BURST + 1, 5001));
        assert_false(rate_limit_admit(&limit, INTERVAL, BURST + 1, 5001));
        assert_false(rate_limit_admit(&limit, INTERVAL, 1, 5002));
        assert_true(rate_limit_admit(&limit, 2, 1, 5003));
}

/* What takes the place of a binding is under its limit still: a reload gives no second burst. */
static void test_handed_over(void **state) {
        _cleanup_(binding_freep) Binding *before = NULL, *after = NULL;

        assert_ok(binding_new("x", &before));
        assert_ok(binding_new("x", &after));
        assert_int_equal(admit(&before->limit.rate, 9, 5000), BURST);
        binding_adopt(after, before);
        assert_int_equal(admit(&after->limit.rate, 9, 5999), 0);
        assert_int_equal(admit(&after->limit.rate, 9, 6000), BURST);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_burst),
                cmocka_unit_test(test_interval_begins_with_the_first),
                cmocka_unit_test(test_quiet_time),
                cmocka_unit_test(test_first_moments),
                cmocka_unit_test(test_no_limit),
                cmocka_unit_test(test_changed_limit),
                cmocka_unit_test(test_handed_over),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
