/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Functions that are left in every way that there is (leaver.cc), measured as "Function=" says. The
 * program must not notice: it ends as it does without us, and with the same result. Each call that
 * returns is a window that ends; one that is left by an exception or the like is not.
 */

#include <stdlib.h>
#include <sys/wait.h>

#include "engine.h"
#include "test.h"

#define CALLS 100

/* Which: others of the same functions look at the guard of the stack before they return. */
static const char *leaver = "TLOB_TEST_LEAVER";

static const char *leaver_path(void) {
        const char *path = getenv(leaver);

        if (!path)
                fail_msg("%s is not set: run this with 'meson test'.", leaver);
        return path;
}

static void run_leaver(const char *way, char result[static 128]) {
        Victim victim = {};

        program_start(&victim, leaver_path(), way);
        result[0] = '\0';
        if (!fgets(result, 128, victim.out))
                result[0] = '\0';
        victim_finish(&victim);
        if (victim.status != 0)
                fail_msg("'%s' ended with status 0x%x.", way, victim.status);
        victim_done(&victim);
        assert_non_null(strstr(result, "result "));
}

/* Runs it without a probe and with one. Returns what was counted. */
static Counters measure(Engine *engine, const char *way, const char *function) {
        char without[128], with[128];
        Statistics final;
        uint32_t index;

        run_leaver(way, without);
        index = engine_add(
                engine, KEYS("Executable", leaver_path(), "Function", function, "BudgetSec", "10s"),
                NULL);
        run_leaver(way, with);
        assert_string_equal(with, without);
        engine_remove(engine, index, &final);
        assert_int_equal(final.counters.violations, 0);
        return final.counters;
}

static void assert_each_call_returns(Engine *engine, const char *way, const char *function) {
        Counters c = measure(engine, way, function);

        assert_int_equal(c.starts, CALLS);
        assert_int_equal(c.in_budget, CALLS);
        assert_int_equal(c.unmatched, 0);
}

/* Every other call does not. */
static void assert_half_return(Engine *engine, const char *way, const char *function) {
        Counters c = measure(engine, way, function);

        assert_int_equal(c.starts, CALLS);
        assert_int_equal(c.in_budget, CALLS / 2);
        assert_int_equal(c.unmatched, 0);
}

static void test_exception(void **state) {
        assert_half_return(*state, "exception", "leave_by_exception");
}

static void test_exception_through(void **state) {
        Counters c = measure(*state, "rethrow", "leave_by_rethrow");

        /* Of the 50 that are thrown, those of 3, 9, ... 99 go on. */
        assert_int_equal(c.starts, CALLS);
        assert_int_equal(c.in_budget, CALLS - 17);
}

static void test_longjmp(void **state) {
        assert_half_return(*state, "longjmp", "leave_by_longjmp");
}

static void test_pthread_exit(void **state) {
        assert_half_return(*state, "pthread_exit", "leave_by_pthread_exit");
}

static void test_cancel(void **state) {
        Counters c = measure(*state, "cancel", "leave_by_cancel");

        assert_int_equal(c.starts, 1);
        assert_int_equal(c.in_budget, 0);
}

/* Which window is whose cannot be told on two stacks in one thread; but no harm is done. */
static void test_coroutine(void **state) {
        Counters c = measure(*state, "coroutine", "leave_in_coroutine");

        assert_int_equal(c.starts + c.nested, 2 * CALLS);
}

/* Stacks that are mapped side by side are not one. */
static void test_coroutine_above(void **state) {
        assert_each_call_returns(*state, "coroutine-above", "leave_for_above");
        assert_each_call_returns(*state, "coroutine-above-unguarded", "leave_for_above");
        assert_each_call_returns(*state, "coroutine-above-thread", "leave_for_above");
}

static void test_other_stack(void **state) {
        Counters c = measure(*state, "sigaltstack", "leave_on_any_stack");

        assert_int_equal(c.starts, CALLS);
        assert_int_equal(c.in_budget, CALLS);
        assert_int_equal(c.nested, CALLS - 1);
}

/* There, the inner call looks as if the outer one had been left. */
static void test_stack_above(void **state) {
        Counters c = measure(*state, "sigaltstack-above", "leave_on_any_stack");

        assert_int_equal(c.starts + c.nested, 2 * CALLS - 1);
}

static void test_recursion(void **state) {
        Counters c = measure(*state, "recursion", "leave_recursively");

        assert_int_equal(c.starts, CALLS);
        assert_int_equal(c.in_budget, CALLS);
        assert_true(c.nested > CALLS);
        assert_int_equal(c.unmatched, 0);
}

static void test_returns(void **state) {
        assert_each_call_returns(*state, "returns", "leave_in_many_ways");
}

static void test_switch(void **state) {
        assert_each_call_returns(*state, "switch", "leave_by_switch");
}

static void test_tail_call(void **state) {
        assert_each_call_returns(*state, "tail", "leave_by_tail_call");
        assert_each_call_returns(*state, "pointer", "leave_by_pointer");
}

static void test_cold(void **state) {
        assert_each_call_returns(*state, "cold", "leave_from_cold");
}

#ifdef __x86_64__

/* A probe is on a branch, which costs a fraction of one on a return. */
static void test_guard(void **state) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        uint32_t index = engine_add(*state,
                                    KEYS("Executable", leaver_path(), "Function",
                                         "leave_recursively", "BudgetSec", "10s"),
                                    &binding);

        assert_true(binding->resolved.sites.exits.depth > 0);
        assert_int_equal(binding->resolved.sites.exits.depth_of_frame_pointer,
                         strstr(leaver, "FRAMED") != NULL);
        assert_int_equal(binding->resolved.stop_kind, PROBE_EMULATED);
        engine_remove(*state, index, NULL);
}

static void test_loop(void **state) {
        assert_each_call_returns(*state, "loop", "leave_a_loop");
}

#endif

ENGINE_TESTS(exits) {
#ifdef __x86_64__
        const struct CMUnitTest guard[] = {
                cmocka_unit_test_setup_teardown(test_guard, engine_setup, engine_teardown),
        };
#endif
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_exception, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_exception_through, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_longjmp, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_pthread_exit, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_cancel, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_coroutine, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_coroutine_above, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_other_stack, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_stack_above, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_recursion, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_returns, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_switch, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_tail_call, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_cold, engine_setup, engine_teardown),
#ifdef __x86_64__
                cmocka_unit_test_setup_teardown(test_loop, engine_setup, engine_teardown),
#endif
        };

        static const char *const guarded[] = { "TLOB_TEST_LEAVER_GUARDED",
                                               "TLOB_TEST_LEAVER_FRAMED" };
        int n;

        n = cmocka_run_group_tests(tests, NULL, NULL);
        for (size_t i = 0; i < ELEMENTSOF(guarded); i++) {
                leaver = guarded[i];
#ifdef __x86_64__
                n += cmocka_run_group_tests(guard, NULL, NULL);
#endif
                n += cmocka_run_group_tests(tests, NULL, NULL);
        }
        return n;
}
