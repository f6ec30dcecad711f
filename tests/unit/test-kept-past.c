/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* daemon/bpf/kept-past.c, core/report/past.c */

#include "bpf/kept-past.h"

#include "binding/build.h"
#include "test.h"

static Histogram make(size_t bucket, uint64_t n) {
        Histogram lengths = {};

        lengths.counts[bucket] = n;
        return lengths;
}

static void add(Past *past, const char *id, size_t bucket, uint64_t n) {
        Histogram lengths = make(bucket, n);

        assert_ok(past_add_lengths(past, id, &lengths));
        past->statistics.counters.starts += n;
}

static Kept *make_kept(void) {
        Kept *kept = NULL;

        assert_ok(kept_new(&(KeptFormat) { .bindings_max = 3 }, &kept));
        return kept;
}

static void test_is_what_it_was(void **state) {
        _cleanup_(past_done) Past past = {}, read = {}, other = {};
        _cleanup_(kept_freep) Kept *kept = make_kept();

        add(&past, "aa", 3, 5);
        add(&past, "bb", 4, 7);
        past.told_of = strdup("bb");
        past.statistics.cost_ns = 1000;
        kept_set_past(kept, 1, &past);
        assert_ok(kept_add_past(kept, 1, &read));
        assert_int_equal(read.statistics.counters.starts, 12);
        assert_int_equal(histogram_count(read.lengths, 0), 12);
        assert_string_equal(read.builds[0].id, "bb");
        assert_int_equal(read.builds[0].lengths->counts[4], 7);
        assert_string_equal(read.builds[1].id, "aa");
        assert_int_equal(read.builds[1].lengths->counts[3], 5);
        assert_string_equal(read.told_of, "bb");
        /* Beside what probes have cost. */
        assert_int_equal(read.statistics.cost_ns, 0);

        /* Its neighbours have none. */
        assert_ok(kept_add_past(kept, 0, &other));
        assert_ok(kept_add_past(kept, 2, &other));
        assert_null(other.lengths);
        assert_null(other.builds[0].id);
        assert_null(other.told_of);

        past_done(&read);
        kept_set_past(kept, 1, &(Past) {});
        assert_ok(kept_add_past(kept, 1, &read));
        assert_null(read.lengths);
        assert_null(read.builds[0].id);
        assert_int_equal(read.statistics.counters.starts, 0);
}

static void test_added(void **state) {
        _cleanup_(past_done) Past past = {}, newer = {};
        _cleanup_(kept_freep) Kept *kept = make_kept();

        add(&past, "aa", 3, 5);
        add(&past, "bb", 4, 7);
        add(&newer, "bb", 4, 1);
        add(&newer, "cc", 5, 2);
        kept_set_past(kept, 0, &newer);
        assert_ok(kept_add_past(kept, 0, &past));
        assert_int_equal(past.statistics.counters.starts, 15);
        assert_string_equal(past.builds[0].id, "cc");
        assert_int_equal(histogram_count(past.builds[0].lengths, 0), 2);
        assert_string_equal(past.builds[1].id, "bb");
        assert_int_equal(histogram_count(past.builds[1].lengths, 0), 8);
        /* Its own stay what they were. */
        past_done(&newer);
        assert_ok(kept_add_past(kept, 0, &newer));
        assert_int_equal(histogram_count(newer.builds[1].lengths, 0), 1);
}

/* Of a binding that was measured in one build, and is measured in the next. */
static void test_told_once(void **state) {
        _cleanup_(past_done) Past past = {};

        add(&past, "aa", 3, 5);
        past.told_of = strdup("bb");
        /* Its service is started again. */
        add(&past, "bb", 4, 7);
        assert_string_equal(past.told_of, "bb");
}

static void add_former(Past *past, const char *id, size_t bucket, uint64_t n) {
        Histogram lengths = make(bucket, n);

        assert_ok(past_add_former(past, id, &lengths));
}

static void assert_builds(const Past *past, const char *last, uint64_t n_last, const char *before,
                          uint64_t n_before) {
        assert_string_equal(past->builds[0].id, last);
        assert_int_equal(histogram_count(past->builds[0].lengths, 0), n_last);
        assert_string_equal(past->builds[1].id, before);
        assert_int_equal(histogram_count(past->builds[1].lengths, 0), n_before);
}

/* An old build that is measured beside the new one for a while is not the last one by that. */
static void test_former(void **state) {
        _cleanup_(past_done) Past past = {}, first = {};

        add(&past, "aa", 3, 5);
        add(&past, "bb", 4, 7);
        add_former(&past, "aa", 3, 2);
        assert_builds(&past, "bb", 7, "aa", 7);
        /* Older than both: it counts in the total alone. */
        add_former(&past, "00", 3, 4);
        assert_builds(&past, "bb", 7, "aa", 7);
        assert_int_equal(histogram_count(past.lengths, 0), 5 + 7 + 2 + 4);

        add_former(&first, "aa", 3, 1);
        add(&first, "bb", 3, 1);
        assert_builds(&first, "bb", 1, "aa", 1);
}

/* There and back: nothing of either is forgotten. */
static void test_back(void **state) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        Histogram live = make(3, 1);
        Past *past;

        assert_ok(binding_new("x", &binding));
        past = &binding->measurement.past;
        add(past, "aa", 3, 5);
        add(past, "bb", 4, 7);
        binding->resolved.build_id = strdup("aa");
        assert_string_equal(binding_add_build(binding, &live)->id, "bb");
        assert_int_equal(histogram_count(&live, 0), 6);
        add(past, "aa", 3, 1);
        assert_builds(past, "aa", 6, "bb", 7);
}

static void test_id_without_room(void **state) {
        _cleanup_(past_done) Past past = {}, read = {};
        _cleanup_(kept_freep) Kept *kept = make_kept();
        char id[KEPT_BUILD_ID_MAX + 1] = {};

        memset(id, 'a', KEPT_BUILD_ID_MAX);
        add(&past, id, 3, 5);
        kept_set_past(kept, 0, &past);
        assert_ok(kept_add_past(kept, 0, &read));
        assert_null(read.builds[0].id);
        assert_int_equal(histogram_count(read.lengths, 0), 5);

        kept_set_build_id(&kept->bindings[0], id);
        assert_null(kept_get_build_id(&kept->bindings[0]));
        kept_set_build_id(&kept->bindings[0], id + 1);
        assert_string_equal(kept_get_build_id(&kept->bindings[0]), id + 1);
        kept_set_build_id(&kept->bindings[0], NULL);
        assert_null(kept_get_build_id(&kept->bindings[0]));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_is_what_it_was), cmocka_unit_test(test_added),
                cmocka_unit_test(test_told_once),      cmocka_unit_test(test_former),
                cmocka_unit_test(test_back),           cmocka_unit_test(test_id_without_room),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
