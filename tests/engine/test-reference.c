/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Against a program that measures itself: it reads CLOCK_MONOTONIC as the first and the last thing
 * in each window, keeps that in memory until it ends, and is told how to spend the time between.
 *
 * What is reported can only be longer than that, by what the probes cost: some microseconds. A task
 * can lose its CPU just there, so the bound is for the median.
 */

#include <inttypes.h>

#include "engine.h"
#include "test.h"

#define USEC 1000ULL
#define MSEC 1000000ULL

typedef struct Reference {
        const char *words;
        size_t n; /* windows of d in them */
        enum tlob_state most;
        uint64_t least_ns[TLOB_N_STATES]; /* half of the windows are so long in it, or longer */
} Reference;

static uint64_t bound_ns(void) {
        return machine_is_emulated() ? 5 * MSEC : 50 * USEC;
}

static int compare_ns(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

static int by_task_and_start(const void *a, const void *b) {
        const Window *x = a, *y = b;

        return x->tid != y->tid ? (x->tid > y->tid) - (x->tid < y->tid)
                                : compare_ns(&x->start_ns, &y->start_ns);
}

static int report_by_task_and_time(const void *a, const void *b) {
        const Report *x = a, *y = b;

        return x->tid != y->tid ? (x->tid > y->tid) - (x->tid < y->tid)
                                : compare_ns(&x->time_ns, &y->time_ns);
}

/* Leaves only completions, in the order of the windows. */
static void keep_completions(Engine *engine) {
        size_t n = 0;

        for (size_t i = 0; i < engine->n_reports; i++)
                if (engine->reports[i].type == REPORT_COMPLETION)
                        engine->reports[n++] = engine->reports[i];
        engine->n_reports = n;
        qsort(engine->reports, n, sizeof(Report), report_by_task_and_time);
}

/* One window; returns by how much more was reported. */
static uint64_t check_window(const Report *report, const Window *window, uint64_t ran_ns) {
        uint64_t elapsed_ns = window->end_ns - window->start_ns;

        assert_int_equal(report->tid, window->tid);
        assert_true(report->time_ns >= window->end_ns);
        assert_true(report->time_ns - report->elapsed_ns <= window->start_ns);
        assert_true(report->elapsed_ns >= elapsed_ns);
        /* What a switch takes, the kernel counts as if the task ran. */
        if (report->spent_ns[TLOB_WAITING] > 0)
                ran_ns /= 2;
        assert_true(report->spent_ns[TLOB_RUNNING] >= ran_ns || machine_is_emulated());
        return report->elapsed_ns - elapsed_ns;
}

static uint64_t median_spent(const Engine *engine, enum tlob_state state) {
        _cleanup_free_ uint64_t *spent_ns = calloc(engine->n_reports, sizeof(uint64_t));

        assert_non_null(spent_ns);
        for (size_t i = 0; i < engine->n_reports; i++)
                spent_ns[i] = engine->reports[i].spent_ns[state];
        qsort(spent_ns, engine->n_reports, sizeof(uint64_t), compare_ns);
        return spent_ns[engine->n_reports / 2];
}

/* All windows: others on the machine may keep them waiting, whatever they do. */
static void check_states(const Engine *engine, const Reference *reference) {
        uint64_t spent_ns[TLOB_N_STATES] = {}, sum_ns = 0;

        for (size_t i = 0; i < engine->n_reports; i++)
                for (size_t j = 0; j < TLOB_N_STATES; j++)
                        spent_ns[j] += engine->reports[i].spent_ns[j];
        for (size_t i = 0; i < TLOB_N_STATES; i++) {
                assert_true(median_spent(engine, i) >= reference->least_ns[i]);
                sum_ns += i == TLOB_WAITING && i != reference->most ? 0 : spent_ns[i];
        }
        assert_true(spent_ns[reference->most] > sum_ns / 2);
}

/*
 * The percentiles of the back end against those of the reference, whose windows are sorted. Each
 * window was reported as no shorter, and longer by no more than most_ns: so is each percentile, but
 * for the width of its bucket.
 */
static void check_percentiles(Engine *engine, uint32_t index, const uint64_t *elapsed_ns, size_t n,
                              uint64_t most_ns) {
        static const unsigned per_mille[] = { 10, 500, 900, 990, 999, 1000 };
        uint64_t max_ns = engine_statistics(engine, index).max_ns;
        HistogramBucket buckets[TLOB_BUCKETS];
        Histogram histogram = {};

        assert_int_equal(engine->backend->ops->histogram(engine->backend, index, &histogram), 0);
        for (size_t i = 0; i < TLOB_BUCKETS; i++)
                buckets[i] = (HistogramBucket) { histogram_upper_bound(i), histogram.counts[i] };

        assert_true(max_ns >= elapsed_ns[n - 1]);
        for (size_t i = 0; i < ELEMENTSOF(per_mille); i++) {
                uint64_t expected = elapsed_ns[(n * per_mille[i] + 999) / 1000 - 1];
                uint64_t value = histogram_quantile(buckets, TLOB_BUCKETS, per_mille[i], max_ns);

                assert_true(value >= expected);
                assert_true(value <= (expected + most_ns) * 17 / 16 + 1);
        }
}

static void check(Engine *engine, const Reference *reference) {
        _cleanup_(victim_done) Victim victim = {};
        _cleanup_free_ uint64_t *more_ns = calloc(reference->n, sizeof(uint64_t)),
                                *elapsed_ns = calloc(reference->n, sizeof(uint64_t));
        uint32_t d = engine_add(engine, FUNCTION("d", "1us"), NULL);

        assert_non_null(more_ns);
        assert_non_null(elapsed_ns);
        engine_run(engine, &victim, reference->words);
        keep_completions(engine);
        assert_int_equal(victim.n_windows, reference->n);
        assert_int_equal(engine->n_reports, reference->n);
        assert_int_equal(engine_statistics(engine, d).counters.starts, reference->n);
        qsort(victim.windows, reference->n, sizeof(Window), by_task_and_start);

        for (size_t i = 0; i < reference->n; i++) {
                const Window *w = &victim.windows[i];

                more_ns[i] =
                        check_window(&engine->reports[i], w, reference->least_ns[TLOB_RUNNING]);
                elapsed_ns[i] = w->end_ns - w->start_ns;
        }
        qsort(more_ns, reference->n, sizeof(uint64_t), compare_ns);
        qsort(elapsed_ns, reference->n, sizeof(uint64_t), compare_ns);
        print_message("%zu windows, longer by %" PRIu64 " ns (median), %" PRIu64 " ns (most)\n",
                      reference->n, more_ns[reference->n / 2], more_ns[reference->n - 1]);
        assert_true(more_ns[reference->n / 2] <= bound_ns());
        /* In an emulator a step of the scheduler may take as long: which state is it part of? */
        if (!machine_is_emulated())
                check_states(engine, reference);
        check_percentiles(engine, d, elapsed_ns, reference->n, more_ns[reference->n - 1]);
}

/* nanosleep() promises that so much time goes by, not that all of it is slept. */
static void test_known_sleep(void **state) {
        check(*state, &(Reference) { .words = "threads:2 ( repeat:100 ( d( sleep:1000000 ) ) )",
                                     .n = 200,
                                     .most = TLOB_SLEEPING,
                                     .least_ns = { [TLOB_SLEEPING] = 500000 } });
}

/* The kernel's account of CPU time leaves out what others took of it: ours can only be more. */
static void test_known_run(void **state) {
        check(*state, &(Reference) { .words = "repeat:200 ( d( burn:1000000 ) )",
                                     .n = 200,
                                     .most = TLOB_RUNNING,
                                     .least_ns = { [TLOB_RUNNING] = 950000 } });
}

/* Four of them on one CPU: each waits for the three others most of the time. */
static void test_wait_behind_competitors(void **state) {
        check(*state, &(Reference) { .words = "pin:0 threads:4 ( repeat:5 ( d( burn:20000000 ) ) )",
                                     .n = 20,
                                     .most = TLOB_WAITING,
                                     .least_ns = { [TLOB_RUNNING] = 19000000 } });
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, engine_setup, engine_teardown)

ENGINE_TESTS(reference) {
        const struct CMUnitTest tests[] = {
                TEST(test_known_sleep),
                TEST(test_known_run),
                TEST(test_wait_behind_competitors),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
