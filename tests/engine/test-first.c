/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Of several budgets that are broken when somebody looks, the one that was broken first is named. A
 * task that does not leave its CPU is looked at by the tick or at its stop, where the start arms no
 * timer: up to four milliseconds late, when the budgets below have all passed.
 */

#include "engine.h"
#include "test.h"

#define USEC 1000ULL
#define MSEC 1000000ULL
#define RUNS 20

/*
 * The total is 1.5 times that of the state; what was not spent in the state can make it be the
 * first.
 */
#define BETWEEN_NS (500 * USEC)

static uint64_t not_running_ns(const Report *r) {
        return r->spent_ns[TLOB_WAITING] + r->spent_ns[TLOB_SLEEPING];
}

static void check(void **state, const char *running, const char *total, const char *words,
                  enum tlob_budget first) {
        Engine *engine = *state;
        uint32_t a = engine_add(engine,
                                KEYS("Executable", "%v", "Function", "victim_a", "BudgetSec", total,
                                     "RunningBudgetSec", running),
                                NULL);
        size_t n = 0;

        for (size_t i = 0; i < RUNS; i++) {
                _cleanup_(victim_done) Victim victim = {};
                const Report *r;

                engine_run(engine, &victim, words);
                r = engine_report(engine, REPORT_VIOLATION, a, i);
                if (first == TLOB_BUDGET_RUNNING && not_running_ns(r) > BETWEEN_NS / 2)
                        continue;
                assert_int_equal(r->budget, first);
                /* Late since that budget ran out, not since another. */
                if (first == TLOB_BUDGET_TOTAL)
                        assert_int_equal(r->late_ns, r->elapsed_ns - 1000 * USEC);
                n++;
        }
        assert_int_not_equal(n, 0);
}

static void test_running_before_total_in_a_long_window(void **state) {
        check(state, "1ms", "1500us", "a( spin:20000000 )", TLOB_BUDGET_RUNNING);
}

static void test_running_before_total_in_a_short_window(void **state) {
        check(state, "1ms", "1500us", "a( spin:1700000 )", TLOB_BUDGET_RUNNING);
}

static void test_total_before_running(void **state) {
        check(state, "1500us", "1ms", "a( spin:20000000 )", TLOB_BUDGET_TOTAL);
}

/*
 * The time asleep is over its budget before the total is, and both are when it has run on for a
 * while. A task that gets no CPU between its call and its sleep, sleeps less.
 */
static void test_a_state_that_was_left(void **state) {
        Engine *engine = *state;
        uint32_t a = engine_add(engine,
                                KEYS("Executable", "%v", "Function", "victim_a", "BudgetSec",
                                     "400ms", "SleepingBudgetSec", "2ms"),
                                NULL);
        size_t i = 0;
        const Report *r;

        do {
                _cleanup_(victim_done) Victim victim = {};

                assert_in_range(i, 0, RUNS - 1);
                engine_run(engine, &victim, "a( sleep:30000000 spin:500000000 )");
                r = engine_report(engine, REPORT_COMPLETION, a, i++);
        } while (r->spent_ns[TLOB_SLEEPING] <= 2 * MSEC);
        assert_int_equal(r->budget, TLOB_BUDGET_SLEEPING);
        assert_int_equal(r->exceeded, 1U << TLOB_BUDGET_TOTAL | 1U << TLOB_BUDGET_SLEEPING);
}

ENGINE_TESTS(first) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_running_before_total_in_a_long_window,
                                                engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_running_before_total_in_a_short_window,
                                                engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_total_before_running, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_state_that_was_left, engine_setup,
                                                engine_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
