/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Windows whose functions are left by no way out of theirs: by longjmp(), by pthread_exit(). They
 * end as abandoned before their budgets run out, and are in no total. And windows of which only the
 * stack pointer is elsewhere, which go on.
 */

#include "engine.h"
#include "test.h"

/*
 * So much that nothing else on a busy machine takes it; what is to take longer takes three times as
 * long.
 */
#define BUDGET "150ms"

/* What became of the windows of a function. */
typedef struct Ends {
        unsigned violated;
        unsigned in_budget;
        unsigned abandoned;
} Ends;

static void check(void **state, const char *const *keys, const char *words, Ends ends) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index = engine_add(engine, keys, NULL);
        Statistics s;

        engine_run(engine, &victim, words);
        s = engine_statistics(engine, index);
        assert_int_equal(s.counters.violated, ends.violated);
        assert_int_equal(s.counters.in_budget, ends.in_budget);
        assert_int_equal(s.counters.ended[TLOB_END_ABANDONED], ends.abandoned);
        assert_int_equal(s.counters.ended[TLOB_END_EXIT], 0);
        assert_int_equal(s.counters.violations, ends.violated);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, index), ends.violated);
        if (ends.violated + ends.in_budget == 0) {
                assert_int_equal(s.max_ns, 0);
                for (size_t i = 0; i < TLOB_N_STATES; i++)
                        assert_int_equal(s.counters.spent_ns[i], 0);
        }
}

static void check_a(void **state, const char *words, Ends ends) {
        check(state, FUNCTION("a", BUDGET), words, ends);
}

static void test_a_jump_then_idle(void **state) {
        check_a(state, "jump( a( jump ) ) sleep:450000000", (Ends) { .abandoned = 1 });
}

static void test_a_jump_then_busy(void **state) {
        check_a(state, "pin:0 jump( a( jump ) ) spin:450000000", (Ends) { .abandoned = 1 });
}

static void test_a_jump_in_a_thread(void **state) {
        check_a(state, "thread( jump( a( jump ) ) sleep:450000000 )", (Ends) { .abandoned = 1 });
        check_a(state, "thread( jump( a( sleep:1000000 jump ) ) spin:450000000 )",
                (Ends) { .abandoned = 1 });
}

/* The outer window has its frame, and goes on. */
static void test_a_jump_into_a_window(void **state) {
        check(state, FUNCTION("b", BUDGET), "b( jump( a( jump ) ) sleep:450000000 )",
              (Ends) { .violated = 1 });
}

/* The first one that leaves has to load the library that does it. */
static void test_a_thread_that_leaves(void **state) {
        check(state, FUNCTION("a", "10s"), "thread( a( leave ) )", (Ends) { .abandoned = 1 });
}

/* The frame was there when the budget ran out. */
static void test_a_jump_after_the_deadline(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", BUDGET), NULL);
        Statistics s;

        engine_run(engine, &victim, "jump( a( sleep:450000000 jump ) ) sleep:10000000");
        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.violations, 1);
        assert_int_equal(s.counters.ended[TLOB_END_ABANDONED], 1);
        assert_int_equal(engine_report(engine, REPORT_COMPLETION, a, 0)->end, TLOB_END_ABANDONED);
}

/* Not reported while it is on a stack above its own, but at the stop. */
static void test_another_stack(void **state) {
        check_a(state, "a( stack( sleep:450000000 ) )", (Ends) { .violated = 1 });
        check_a(state, "thread( a( stack( sleep:450000000 ) ) )", (Ends) { .violated = 1 });
        check_a(state, "thread( a( stack( sleep:450000000 spin:450000000 ) ) )",
                (Ends) { .violated = 1 });
        check(state, FUNCTION("a", "10s"), "thread( a( stack( sleep:1000000 ) ) )",
              (Ends) { .in_budget = 1 });
        check_a(state, "stack( a( sleep:450000000 ) )", (Ends) { .violated = 1 });
}

/* Back on its own stack, it is looked at again. */
static void test_there_and_back(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", BUDGET), NULL);
        const Report *violation, *completion;

        engine_run(engine, &victim,
                   "thread( a( stack( sleep:450000000 ) sleep:500000000 sleep:400000000 ) )");
        violation = engine_report(engine, REPORT_VIOLATION, a, 0);
        completion = engine_report(engine, REPORT_COMPLETION, a, 0);
        assert_true(violation->time_ns + 300000000 < completion->time_ns);
}

static void test_a_signal_handler(void **state) {
        check_a(state, "thread( a( signal( sleep:450000000 ) ) )", (Ends) { .violated = 1 });
        check_a(state, "thread( a( signal( spin:450000000 ) ) )", (Ends) { .violated = 1 });
}

/* Elsewhere the return address is not on the stack when a function begins. */
#ifdef __x86_64__

/*
 * What has left the frame is not seen, and the stack is as deep again: but something else lies
 * there now.
 */
static void test_what_nobody_has_seen(void **state) {
        static const char *const functions[] = { "unseen_throw", "unseen_jump", "unseen_again" };
        const char *path = getenv("TLOB_TEST_UNSEEN");
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index[ELEMENTSOF(functions)];

        if (!path)
                fail_msg("TLOB_TEST_UNSEEN is not set: run this with 'meson test'.");
        for (size_t i = 0; i < ELEMENTSOF(functions); i++)
                index[i] = engine_add(
                        engine,
                        KEYS("Executable", path, "Function", functions[i], "BudgetSec", BUDGET),
                        NULL);
        program_start(&victim, path, "");
        victim_finish(&victim);
        assert_int_equal(victim.status, 0);
        engine_collect(engine);
        for (size_t i = 0; i < ELEMENTSOF(functions); i++) {
                Statistics s = engine_statistics(engine, index[i]);
                unsigned n = i == 2 ? 6 : 3;

                assert_int_equal(s.counters.starts, 2 * n);
                assert_int_equal(s.counters.in_budget, n);
                assert_int_equal(s.counters.nested, 0);
                assert_int_equal(s.counters.ended[TLOB_END_ABANDONED], n);
                assert_int_equal(s.counters.violations, 0);
        }
}

#endif

/* From one function to another, there is no frame that has to be there. */
static void test_two_functions(void **state) {
        check(state, MARKERS("x", BUDGET), "<x sleep:450000000 >x", (Ends) { .violated = 1 });
}

ENGINE_TESTS(frame) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_jump_then_idle, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_jump_then_busy, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_jump_in_a_thread, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_jump_into_a_window, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_thread_that_leaves, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_jump_after_the_deadline, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_another_stack, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_there_and_back, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_signal_handler, engine_setup,
                                                engine_teardown),
#ifdef __x86_64__
                cmocka_unit_test_setup_teardown(test_what_nobody_has_seen, engine_setup,
                                                engine_teardown),
#endif
                cmocka_unit_test_setup_teardown(test_two_functions, engine_setup, engine_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
