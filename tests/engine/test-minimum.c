/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* BudgetMinSec=: windows that are over too soon. */

#include "engine.h"
#include "test.h"

#define MSEC 1000000ULL

#define MINIMUM(budget, minimum)                                                                   \
        KEYS("Executable", "%v", "Function", "victim_a", "BudgetSec", budget, "BudgetMinSec",      \
             minimum)

static void test_too_short(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, MINIMUM("1min", "10s"), NULL);
        const Report *violation, *completion;
        Statistics s;

        engine_run(engine, &victim, "a( sleep:2000000 )");
        violation = engine_report(engine, REPORT_VIOLATION, a, 0);
        assert_int_equal(violation->budget, TLOB_BUDGET_MINIMUM);
        assert_int_equal(violation->late_ns, 0);
        assert_in_range(violation->elapsed_ns, 2 * MSEC, 9999 * MSEC);
        completion = engine_report(engine, REPORT_COMPLETION, a, 0);
        assert_int_equal(completion->id, violation->id);
        assert_int_equal(completion->budget, TLOB_BUDGET_MINIMUM);
        assert_int_equal(completion->exceeded, 1U << TLOB_BUDGET_MINIMUM);
        assert_int_equal(completion->end, TLOB_END_STOP);
        assert_int_equal(completion->elapsed_ns, violation->elapsed_ns);
        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.violations, 1);
        assert_int_equal(s.counters.violated, 1);
        assert_int_equal(s.counters.in_budget, 0);
}

static void test_long_enough(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, MINIMUM("1min", "2ms"), NULL);
        uint32_t b = engine_add(engine, MINIMUM("infinity", "2ms"), NULL);

        engine_run(engine, &victim, "repeat:3 ( a( sleep:2000000 ) )");
        assert_int_equal(engine_statistics(engine, a).counters.in_budget, 3);
        assert_int_equal(engine_statistics(engine, b).counters.in_budget, 3);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, a), 0);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, b), 0);
}

/* Both can be broken, by different windows, and each is named. */
static void test_both(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, MINIMUM("20ms", "10ms"), NULL);

        engine_run(engine, &victim, "a( ) a( sleep:30000000 )");
        assert_int_equal(engine_report(engine, REPORT_COMPLETION, a, 0)->budget,
                         TLOB_BUDGET_MINIMUM);
        assert_int_equal(engine_report(engine, REPORT_COMPLETION, a, 1)->budget, TLOB_BUDGET_TOTAL);
        assert_int_equal(engine_report(engine, REPORT_COMPLETION, a, 1)->exceeded,
                         1U << TLOB_BUDGET_TOTAL);
}

/* It was not over when it ended. */
static void check_end(Engine *engine, const char *words, enum tlob_end end) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t a = engine_add(engine, MINIMUM("1min", "10s"), NULL);
        Statistics s;

        engine_run(engine, &victim, words);
        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.ended[end], 1);
        assert_int_equal(s.counters.violations, 0);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, a), 0);
}

static void test_exit(void **state) {
        check_end(*state, "a( exit )", TLOB_END_EXIT);
}

static void test_exec(void **state) {
        check_end(*state, "a( exec )", TLOB_END_EXEC);
}

static void test_jump(void **state) {
        check_end(*state, "jump( a( jump ) )", TLOB_END_ABANDONED);
}

static void test_removed(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, MINIMUM("1min", "10s"), NULL);
        Statistics s;

        victim_start(&victim, "a( say:inside )");
        victim_expect(&victim, "inside");
        engine_remove(engine, a, &s);
        assert_int_equal(s.counters.ended[TLOB_END_REMOVED], 1);
        assert_int_equal(s.counters.violations, 0);
        victim_continue(&victim);
        victim_finish(&victim);
}

ENGINE_TESTS(minimum) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_too_short, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_long_enough, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_both, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_exit, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_exec, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_jump, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_removed, engine_setup, engine_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
