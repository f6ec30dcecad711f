/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/tolerance.h"

#include "base/cleanup.h"
#include "test.h"

#define SEC   UINT64_C(1000000000)
#define HOUR  (3600 * SEC)
#define BEGIN (1000 * SEC)

static const Tolerance three = { .allowed = 3, .of = 100 };

static const struct {
        const char *s;
        uint64_t allowed, of;
} good[] = {
        { "3/100", 3, 100 },   { "1/2", 1, 2 },         { "999999/1000000", 999999, 1000000 },
        { "1%", 1, 100 },      { "99%", 99, 100 },      { "0.1%", 1, 1000 },
        { "0.05%", 5, 10000 }, { "2.50%", 250, 10000 }, { "0.0001%", 1, 1000000 },
};

/* clang-format off */
static const char *const bad[] = {
        "", "0", "0/100", "0%", "0.0%", "100%", "1/1", "3/2", "3/", "/100", "3", "-1/100", "+1%",
        "1 %", "1% ", " 1%", "%", ".5%", "1.%", "1.5", "1/2%", "1/1000001", "0.00001%", "1e3%",
        "1/2/3", "0x1/9", "3/100x", "99999999999999999999/2", "1/99999999999999999999",
};
/* clang-format on */

static void test_parse(void **state) {
        Tolerance tolerance;

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                assert_ok(tolerance_parse(good[i].s, &tolerance));
                assert_int_equal(tolerance.allowed, good[i].allowed);
                assert_int_equal(tolerance.of, good[i].of);
        }
        tolerance.allowed = 17;
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                if (tolerance_parse(bad[i], &tolerance) != -EINVAL)
                        fail_msg("'%s' is taken", bad[i]);
                assert_int_equal(tolerance.allowed, 17);
        }
}

/* After so long, it has counted that in all. Returns whether the verdict has changed. */
static bool at(ToleranceTrack *track, const Tolerance *tolerance, uint64_t after, uint64_t windows,
               uint64_t violations) {
        return tolerance_update(track, tolerance, HOUR,
                                &(ToleranceSample) {
                                        .ns = BEGIN + after,
                                        .windows = windows,
                                        .violations = violations,
                                });
}

/* Three are tolerated, whether there have been four windows or a hundred. */
static void test_few_windows(void **state) {
        ToleranceTrack track = {};

        assert_false(at(&track, &three, 0, 5000, 4000));
        assert_false(at(&track, &three, SEC, 5003, 4003));
        assert_false(track.is_broken);
        assert_true(tolerance_burn_rate(&track, &three) == 1);
        assert_true(at(&track, &three, 2 * SEC, 5004, 4004));
        assert_true(track.is_broken);
        assert_int_equal(track.windows, 4);
        assert_int_equal(track.violations, 4);
}

static void test_share(void **state) {
        ToleranceTrack track = {};

        assert_false(at(&track, &three, 0, 0, 0));
        assert_false(at(&track, &three, SEC, 1000, 30));
        assert_true(at(&track, &three, 2 * SEC, 1001, 31));
        assert_true(tolerance_burn_rate(&track, &three) > 1);
        /* A tenth below, and not at once. */
        assert_false(at(&track, &three, 3 * SEC, 1100, 31));
        assert_true(track.is_broken);
        assert_true(at(&track, &three, 4 * SEC, 1149, 31));
        assert_false(track.is_broken);
}

/* What is older than the time does not count, to a sixtieth. */
static void test_time_goes_by(void **state) {
        ToleranceTrack track = {};
        uint64_t windows = 0, violations = 0;

        assert_false(at(&track, &three, 0, 0, 0));
        for (uint64_t minute = 1; minute <= 300; minute++) {
                windows += 100;
                violations += minute <= 60 ? 3 : 0;
                assert_false(at(&track, &three, minute * 60 * SEC, windows, violations));
                if (minute == 60) {
                        assert_int_equal(track.windows, 6000);
                        assert_int_equal(track.violations, 180);
                } else if (minute == 90) {
                        assert_int_equal(track.windows, 6000);
                        assert_int_equal(track.violations, 90);
                } else if (minute > 120)
                        assert_int_equal(track.violations, 0);
        }
}

/* Looked at much more often than it keeps samples, and much more rarely. */
static void test_any_pace(void **state) {
        ToleranceTrack often = {}, rarely = {};

        for (uint64_t i = 0; i <= 3600 * 4; i++)
                (void) at(&often, &three, i * SEC, i * 10, 0);
        assert_in_range(often.windows, 36000, 36000 + 600);
        for (uint64_t i = 0; i < 5; i++)
                (void) at(&rarely, &three, i * 7 * HOUR, i * 10, i);
        assert_int_equal(rarely.windows, 10);
        assert_int_equal(rarely.violations, 1);
}

/* After a reset, or where a binding measures elsewhere. */
static void test_counters_go_back(void **state) {
        ToleranceTrack track = {};

        (void) at(&track, &three, 0, 1000, 0);
        assert_true(at(&track, &three, SEC, 1100, 50));
        assert_false(at(&track, &three, 2 * SEC, 10, 4));
        assert_true(track.is_broken);
        assert_int_equal(track.windows, 0);
        assert_false(at(&track, &three, 3 * SEC, 20, 9));
        assert_int_equal(track.windows, 10);
        assert_int_equal(track.violations, 5);
        /* Enough of them, or enough time. */
        (void) at(&track, &three, 4 * SEC, 0, 0);
        assert_false(at(&track, &three, 5 * SEC, 99, 0));
        assert_true(track.is_broken);
        assert_true(at(&track, &three, 6 * SEC, 100, 0));
        assert_false(track.is_broken);
        assert_true(at(&track, &three, 100 * SEC, 200, 10));
        assert_false(at(&track, &three, 101 * SEC, 0, 0));
        assert_false(at(&track, &three, 101 * SEC + HOUR - 1, 1, 0));
        assert_true(at(&track, &three, 101 * SEC + HOUR, 1, 0));
        assert_false(track.is_broken);
}

static void test_words(void **state) {
        _cleanup_free_ char *text = tolerance_describe(4, 90, HOUR, "3/100", 4.0 / 3);

        assert_string_equal(text, "4 of 90 windows over budget in 1h; 3/100 are tolerated (burn "
                                  "rate 1.33)");
}

/* Years of the fastest service. */
static void test_large_numbers(void **state) {
        const Tolerance fine = { .allowed = 1, .of = TOLERANCE_OF_MAX };
        ToleranceTrack track = {};

        (void) at(&track, &fine, 0, 0, 0);
        assert_false(at(&track, &fine, SEC, UINT64_C(1) << 50, (UINT64_C(1) << 50) / 1000000));
        assert_true(at(&track, &fine, SEC, UINT64_C(1) << 50, (UINT64_C(1) << 50) / 1000000 + 1));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),    cmocka_unit_test(test_few_windows),
                cmocka_unit_test(test_share),    cmocka_unit_test(test_time_goes_by),
                cmocka_unit_test(test_any_pace), cmocka_unit_test(test_counters_go_back),
                cmocka_unit_test(test_words),    cmocka_unit_test(test_large_numbers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
