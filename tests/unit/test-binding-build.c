/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The lengths of windows by build, and when a build is worse than the one before. */

#include "binding/build.h"

#include "test.h"

#define USEC UINT64_C(1000)

static Histogram make(uint64_t ns, uint64_t n) {
        Histogram lengths = {};

        lengths.counts[histogram_bucket(ns)] = n;
        return lengths;
}

static void be_build(Binding *binding, const char *id) {
        assert_ok(free_and_strdup(&binding->resolved.build_id, id));
}

static void note(Binding *binding, uint64_t ns, uint64_t n) {
        Histogram lengths = make(ns, n);

        assert_ok(
                past_add_lengths(&binding->measurement.past, binding->resolved.build_id, &lengths));
}

static void test_builds(void **state) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        const PastBuild *before;
        Histogram live;

        assert_ok(binding_new("x", &binding));
        live = make(USEC, 5);
        assert_null(binding_add_build(binding, &live));

        /* The probes of a build are taken away, and set again. */
        be_build(binding, "aa");
        note(binding, USEC, 10);
        assert_null(binding_add_build(binding, &live));
        assert_int_equal(histogram_count(&live, 0), 15);
        note(binding, USEC, 7);

        /* Another one, which is measured in parts, too. */
        be_build(binding, "bb");
        live = make(USEC, 1);
        before = binding_add_build(binding, &live);
        assert_string_equal(before->id, "aa");
        assert_int_equal(histogram_count(before->lengths, 0), 17);
        assert_int_equal(histogram_count(&live, 0), 1);
        note(binding, 2 * USEC, 3);
        live = make(USEC, 1);
        before = binding_add_build(binding, &live);
        assert_string_equal(before->id, "aa");
        assert_int_equal(histogram_count(&live, 0), 4);

        /* A build without windows is none. */
        be_build(binding, "cc");
        note(binding, USEC, 0);
        live = make(USEC, 0);
        assert_string_equal(binding_add_build(binding, &live)->id, "bb");
        be_build(binding, "dd");
        note(binding, USEC, 2);
        be_build(binding, "ee");
        assert_string_equal(binding_add_build(binding, &live)->id, "dd");

        /* A file without a build-id. */
        be_build(binding, NULL);
        note(binding, USEC, 2);
        assert_null(binding_add_build(binding, &live));

        be_build(binding, "ff");
        past_done(&binding->measurement.past);
        assert_null(binding_add_build(binding, &live));
}

/* n windows of 1 ms, and so many of them longer. */
static Histogram with_tail(uint64_t n, uint64_t n_tail, uint64_t tail_ns) {
        Histogram lengths = make(1000 * USEC, n - n_tail);

        lengths.counts[histogram_bucket(tail_ns)] += n_tail;
        return lengths;
}

static void test_worse(void **state) {
        const Histogram before = with_tail(10000, 80, 4000 * USEC);
        const struct {
                Histogram now;
                bool worse;
        } cases[] = {
                { before, false },
                /* The same, but for the few that were always long. */
                { with_tail(10000, 95, 40000 * USEC), false },
                /* 3 of 100 take longer than 99 of 100 did. */
                { with_tail(10000, 300, 2000 * USEC), true },
                /* Not much longer. */
                { with_tail(10000, 300, 1150 * USEC), false },
                /* All do. */
                { make(1500 * USEC, 1000), true },
                /* Too few to tell. */
                { make(1500 * USEC, 999), false },
                /* Better. */
                { make(500 * USEC, 10000), false },
        };
        const Histogram few = make(USEC, 999);
        uint64_t before_ns, now_ns;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(lengths_are_worse(&before, &cases[i].now, &before_ns, &now_ns),
                                 cases[i].worse);
        assert_false(lengths_are_worse(&few, &cases[4].now, &before_ns, &now_ns));
        assert_true(lengths_are_worse(&before, &cases[2].now, &before_ns, &now_ns));
        assert_true(before_ns >= 1000 * USEC && before_ns < 1070 * USEC);
        assert_true(now_ns >= 2000 * USEC && now_ns < 2140 * USEC);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_builds),
                cmocka_unit_test(test_worse),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
