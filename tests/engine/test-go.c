/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Functions of a program in Go (goer.go), which has a clock of its own. A window counts only if its
 * goroutine was on its thread all the time; then it is no longer than the call, and no shorter than
 * what the call does. Each call is counted, also when its stack moves. The program does not notice.
 */

#include <stdlib.h>

#include "engine.h"
#include "test.h"

#define CALLS     ((size_t) 100)
#define N_CHANGES 100

static const char *goer_path(void) {
        const char *path = getenv("TLOB_TEST_GOER");

        if (!path)
                fail_msg("TLOB_TEST_GOER is not set: run this with 'meson test'.");
        return path;
}

static uint32_t add(Engine *engine, const char *function, const char *budget) {
        return engine_add(
                engine, KEYS("Executable", goer_path(), "Function", function, "BudgetSec", budget),
                NULL);
}

/* Runs it without a probe and with one. Returns what was counted. */
static Statistics measure(Engine *engine, Victim *victim, const char *way, const char *function,
                          const char *budget, uint32_t *ret_index) {
        _cleanup_(victim_done) Victim before = {};
        char without[RESULT_MAX], with[RESULT_MAX];
        Statistics s;

        program_start(&before, goer_path(), way);
        program_finish(&before, without);
        *ret_index = add(engine, function, budget);
        program_start(victim, goer_path(), way);
        program_finish(victim, with);
        assert_string_equal(with, without);
        engine_collect(engine);
        s = engine_statistics(engine, *ret_index);
        assert_int_equal(s.open, 0);
        assert_int_equal(s.counters.unmatched, 0);
        assert_int_equal(s.counters.ended[TLOB_END_ABANDONED], 0);
        return s;
}

static uint64_t total(const Statistics *s) {
        uint64_t sum = 0;

        for (size_t i = 0; i < TLOB_N_STATES; i++)
                sum += s->counters.spent_ns[i];
        return sum;
}

static void sum_up(const Victim *victim, uint64_t *ret_total, uint64_t *ret_max) {
        *ret_total = *ret_max = 0;
        for (size_t i = 0; i < victim->n_windows; i++) {
                uint64_t length = victim->windows[i].end_ns - victim->windows[i].start_ns;

                *ret_total += length;
                if (length > *ret_max)
                        *ret_max = length;
        }
}

/* Each call takes at least that long. */
static void assert_lengths(const Statistics *s, const Victim *victim, uint64_t least_ns) {
        uint64_t n = s->counters.in_budget + s->counters.violated, own_total, own_max;

        sum_up(victim, &own_total, &own_max);
        assert_true(total(s) >= n * least_ns);
        assert_true(total(s) <= own_total);
        assert_true(s->max_ns <= own_max);
}

static void test_running(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index;
        Statistics s;

        s = measure(engine, &victim, "spin", "main.spin", "10s", &index);
        assert_int_equal(s.counters.starts, CALLS);
        assert_int_equal(s.counters.in_budget + s.counters.ended[TLOB_END_SWITCHED], CALLS);
        assert_true(s.counters.in_budget > CALLS / 2);
        assert_lengths(&s, &victim, 100000);
        engine_remove(engine, index, NULL);
}

static void assert_within_call(const Report *report, const Victim *victim) {
        size_t n = 0;

        for (size_t i = 0; i < victim->n_windows; i++)
                n += report->time_ns > victim->windows[i].start_ns &&
                     report->time_ns < victim->windows[i].end_ns;
        assert_int_equal(n, 1);
}

/* A goroutine in a system call has its thread for itself: its violation comes while it is there. */
static void test_sleeping(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        size_t n = CALLS / 10;
        uint32_t index;
        Statistics s;

        s = measure(engine, &victim, "block", "main.block", "5ms", &index);
        assert_int_equal(s.counters.starts, n);
        /* A few may have been switched before they slept. */
        assert_int_equal(s.counters.violated + s.counters.ended[TLOB_END_SWITCHED], n);
        assert_true(s.counters.violated > 0);
        assert_true(s.counters.violations >= s.counters.violated);
        assert_lengths(&s, &victim, 20000000);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, index), s.counters.violations);
        for (size_t i = 0; i < s.counters.violations; i++)
                assert_within_call(engine_report(engine, REPORT_VIOLATION, index, i), &victim);
        engine_remove(engine, index, NULL);
}

/* It goes at once, and its thread does something else: nothing is known, nothing is reported. */
static void test_parked(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        size_t n = CALLS / 10;
        uint32_t index;
        Statistics s;

        s = measure(engine, &victim, "park", "main.park", "150ms", &index);
        assert_int_equal(s.counters.starts, n);
        assert_int_equal(s.counters.ended[TLOB_END_SWITCHED], n);
        assert_int_equal(s.counters.violations, 0);
        assert_int_equal(total(&s), 0);
        engine_remove(engine, index, NULL);
}

/* Many on few threads: those that made way are left out, the others are as long as they were. */
static void test_crowd(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        const size_t n = 8 * CALLS, n_gone = 8 * ((CALLS + 2) / 3);
        Engine *engine = *state;
        uint32_t index;
        Statistics s;

        s = measure(engine, &victim, "hop", "main.hop", "10s", &index);
        assert_int_equal(s.counters.starts, n);
        assert_int_equal(s.counters.nested, 0);
        assert_true(s.counters.ended[TLOB_END_SWITCHED] >= n_gone);
        assert_int_equal(s.counters.in_budget + s.counters.ended[TLOB_END_SWITCHED], n);
        assert_true(s.counters.in_budget > 0);
        assert_lengths(&s, &victim, 10000);
        engine_remove(engine, index, NULL);
}

/* Each of the calls starts once, though its stack moves, and only the outermost is a window. */
static void test_moving_stack(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        const size_t n = CALLS * 101;
        uint32_t index;
        Statistics s;

        s = measure(engine, &victim, "grow", "main.grow", "10s", &index);
        assert_int_equal(s.counters.starts + s.counters.nested, n);
        assert_true(s.counters.in_budget > CALLS / 2);
        assert_true(s.counters.in_budget <= CALLS);
        assert_lengths(&s, &victim, 0);
        engine_remove(engine, index, NULL);
}

static void test_large_frame(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index;
        Statistics s;

        s = measure(engine, &victim, "large", "main.large", "10s", &index);
        assert_int_equal(s.counters.starts, CALLS);
        assert_int_equal(s.counters.in_budget + s.counters.ended[TLOB_END_SWITCHED], CALLS);
        assert_true(s.counters.in_budget > CALLS / 2);
        assert_lengths(&s, &victim, 0);
        engine_remove(engine, index, NULL);

        /* One that does not look for room. */
        victim_done(&victim);
        victim = (Victim) {};
        s = measure(engine, &victim, "large", "main.leaf", "10s", &index);
        assert_int_equal(s.counters.starts, CALLS);
        assert_int_equal(s.counters.in_budget + s.counters.ended[TLOB_END_SWITCHED], CALLS);
        assert_true(s.counters.in_budget > CALLS / 2);
        engine_remove(engine, index, NULL);
}

/* A panic passes through half of the calls. */
static void test_panic(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index;
        Statistics s;

        s = measure(engine, &victim, "throw", "main.throw", "10s", &index);
        assert_int_equal(s.counters.starts, CALLS);
        assert_true(s.counters.ended[TLOB_END_SWITCHED] >= CALLS / 2);
        assert_int_equal(s.counters.in_budget + s.counters.ended[TLOB_END_SWITCHED], CALLS);
        assert_true(s.counters.in_budget > 0);
        engine_remove(engine, index, NULL);
}

static void test_exit(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index;
        Statistics s;

        s = measure(engine, &victim, "leave", "main.leave", "10s", &index);
        assert_int_equal(s.counters.starts, 1);
        assert_int_equal(s.counters.ended[TLOB_END_EXIT] + s.counters.ended[TLOB_END_SWITCHED], 1);
        engine_remove(engine, index, NULL);
}

/* Probes come and go in goroutines that run, switch, panic and move. */
static void test_changes_under_load(void **state) {
        static const char *const functions[] = { "main.work", "main.grow", "main.catch",
                                                 "main.leaf" };
        _cleanup_(victim_done) Victim before = {}, victim = {};
        char without[RESULT_MAX], with[RESULT_MAX];
        Engine *engine = *state;
        uint64_t n_starts = 0;

        program_start(&before, goer_path(), "load");
        victim_expect(&before, "ready");
        victim_continue(&before);
        program_finish(&before, without);

        program_start(&victim, goer_path(), "load");
        victim_expect(&victim, "ready");
        for (size_t i = 0; i < N_CHANGES; i++) {
                uint32_t index = add(engine, functions[i % ELEMENTSOF(functions)], "10s");
                Statistics s;

                /* The books balance when nothing runs. */
                do {
                        engine_collect(engine);
                        assert_int_equal(
                                engine->backend->ops->statistics(engine->backend, index, &s), 0);
                } while (s.counters.starts == 0);
                assert_int_equal(engine->backend->ops->remove(engine->backend, index, &s, NULL), 0);
                engine->added[index] = false;
                assert_int_equal(s.counters.violations, 0);
                n_starts += s.counters.starts;
        }
        victim_continue(&victim);
        program_finish(&victim, with);
        assert_string_equal(with, without);
        assert_true(n_starts >= N_CHANGES);
}

ENGINE_TESTS(go) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_running),
                cmocka_unit_test(test_sleeping),
                cmocka_unit_test(test_parked),
                cmocka_unit_test(test_crowd),
                cmocka_unit_test(test_moving_stack),
                cmocka_unit_test(test_large_frame),
                cmocka_unit_test(test_panic),
                cmocka_unit_test(test_exit),
                cmocka_unit_test(test_changes_under_load),
        };

        return cmocka_run_group_tests(tests, engine_setup, engine_teardown);
}
