/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Functions of a program in Rust (ruster.rs), which has a clock of its own, by the names of its
 * source: methods of a trait, in threads, and a function that panics. The program does not notice.
 */

#include <stdlib.h>

#include "engine.h"
#include "test.h"

#define CALLS ((size_t) 100)

static const char *ruster_path(void) {
        const char *path = getenv("TLOB_TEST_RUSTER");

        if (!path)
                fail_msg("TLOB_TEST_RUSTER is not set: run this with 'meson test'.");
        return path;
}

/* Runs it without a probe and with one, that of a binding at that index. */
static Statistics measure(Engine *engine, Victim *victim, const char *way, uint32_t index) {
        char without[RESULT_MAX], with[RESULT_MAX];
        _cleanup_(victim_done) Victim before = {};
        Statistics s;

        program_start(victim, ruster_path(), way);
        program_finish(victim, with);
        engine_collect(engine);
        s = engine_statistics(engine, index);
        assert_int_equal(s.open, 0);
        assert_int_equal(s.counters.unmatched + s.counters.nested, 0);
        engine_remove(engine, index, NULL);

        program_start(&before, ruster_path(), way);
        program_finish(&before, without);
        assert_string_equal(with, without);
        return s;
}

static uint32_t add(Engine *engine, const char *function, const char *budget) {
        return engine_add(
                engine,
                KEYS("Executable", ruster_path(), "Function", function, "BudgetSec", budget), NULL);
}

/* The calls of the first n records take that long together. */
static uint64_t total(const Victim *victim, size_t n) {
        uint64_t sum = 0;

        assert_true(victim->n_windows >= n);
        for (size_t i = 0; i < n; i++)
                sum += victim->windows[i].end_ns - victim->windows[i].start_ns;
        return sum;
}

static void assert_total(const Statistics *s, const Victim *victim, size_t n, uint64_t least_ns) {
        uint64_t sum = 0;

        for (size_t i = 0; i < TLOB_N_STATES; i++)
                sum += s->counters.spent_ns[i];
        assert_true(sum >= n * least_ns);
        assert_true(sum <= total(victim, n));
}

static void test_a_trait(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index = add(engine, "<ruster::Sleeper as ruster::Task>::run", "500us");
        Statistics s = measure(engine, &victim, "trait", index);

        assert_int_equal(s.counters.violated, CALLS);
        assert_int_equal(s.counters.violations, CALLS);
        assert_total(&s, &victim, CALLS, 1000000);
        assert_true(s.counters.spent_ns[TLOB_SLEEPING] >= CALLS * 900000);
}

/* Of both methods of that trait, one. */
static void test_a_pattern_in_threads(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index = add(engine, "<ruster::Spin* as ruster::*>::run", "10s");
        Statistics s = measure(engine, &victim, "threads", index);

        assert_int_equal(s.counters.in_budget, 4 * CALLS);
        assert_total(&s, &victim, 4 * CALLS, 200000);
}

/* A panic that is caught further out passes through half of the calls. */
static void test_panics(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index = add(engine, "ruster::fail", "10s");
        Statistics s = measure(engine, &victim, "panic", index);

        assert_int_equal(s.counters.starts, CALLS);
        assert_int_equal(s.counters.in_budget, CALLS / 2);
        assert_int_equal(s.counters.ended[TLOB_END_ABANDONED], CALLS / 2);
}

ENGINE_TESTS(rust) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_trait),
                cmocka_unit_test(test_a_pattern_in_threads),
                cmocka_unit_test(test_panics),
        };

        return cmocka_run_group_tests(tests, engine_setup, engine_teardown);
}
