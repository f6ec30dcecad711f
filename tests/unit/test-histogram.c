/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/histogram.h"
#include "test.h"

static void test_every_length_has_its_bucket(void **state) {
        uint64_t before = 0;

        for (size_t i = 0; i < TLOB_BUCKETS; i++) {
                uint64_t upper = histogram_upper_bound(i);

                assert_int_equal(histogram_bucket(upper), i);
                if (i > 0) {
                        assert_true(upper > before);
                        assert_int_equal(histogram_bucket(before + 1), i);
                }
                before = upper;
        }
        assert_int_equal(histogram_bucket(0), 0);
        assert_int_equal(histogram_bucket(UINT64_MAX), TLOB_BUCKETS - 1);
}

static void test_the_error_is_small(void **state) {
        /* Up to an hour and more: the longest budget. */
        for (uint64_t ns = 1; ns < UINT64_C(4000000000000); ns += ns / 37 + 1) {
                uint64_t upper = histogram_upper_bound(histogram_bucket(ns));

                assert_true(upper >= ns);
                assert_true((upper - ns) * 10000 <= ns * 625);
        }
}

static void test_quantiles(void **state) {
        static const HistogramBucket buckets[] = { { 10, 900 }, { 20, 90 }, { 30, 9 }, { 40, 1 } };

        assert_int_equal(histogram_quantile(buckets, 4, 500, 38), 10);
        assert_int_equal(histogram_quantile(buckets, 4, 900, 38), 10);
        assert_int_equal(histogram_quantile(buckets, 4, 901, 38), 20);
        assert_int_equal(histogram_quantile(buckets, 4, 990, 38), 20);
        assert_int_equal(histogram_quantile(buckets, 4, 999, 38), 30);
        assert_int_equal(histogram_quantile(buckets, 4, 1000, 38), 38);
        assert_int_equal(histogram_quantile(buckets, 1, 999, 7), 7);
        assert_int_equal(histogram_quantile(buckets, 0, 500, 38), UINT64_MAX);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_length_has_its_bucket),
                cmocka_unit_test(test_the_error_is_small),
                cmocka_unit_test(test_quantiles),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
