/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Windows of marks, against what the program does (engine/marker.cc): however they are left, with
 * everything that can come between a begin and its end.
 */

#include <stdlib.h>

#include "binding/resolve.h"
#include "engine.h"
#include "test.h"

#define MSEC UINT64_C(1000000)

static const char *path_of(const char *variable) {
        const char *path = getenv(variable);

        if (!path)
                fail_msg("%s does not name what has marks.", variable);
        return path;
}

#define MARK(variable, mark, budget)                                                               \
        KEYS("Executable", path_of(variable), "Mark", mark, "BudgetSec", budget)

static uint32_t add(Engine *engine, const char *mark) {
        return engine_add(engine, MARK("TLOB_TEST_MARKER", mark, "1s"), NULL);
}

static void run(Engine *engine, Victim *victim, const char *words) {
        program_start(victim, path_of("TLOB_TEST_MARKER"), words);
        victim_finish(victim);
        engine_collect(engine);
}

static Counters counters(Engine *engine, uint32_t index) {
        return engine_statistics(engine, index).counters;
}

/* So many windows, each from its begin to its end, and nothing else. */
static void assert_whole(Engine *engine, uint32_t index, uint64_t n) {
        Counters c = counters(engine, index);

        assert_int_equal(c.starts, n);
        assert_int_equal(c.in_budget + c.violated, n);
        assert_int_equal(c.untrapped, 0);
        assert_int_equal(c.nested, 0);
        assert_int_equal(c.unmatched, 0);
}

static void test_ways(void **state) {
        static const struct {
                const char *words;
                uint64_t n;
        } ways[] = {
                { "pair:1000", 1000 }, { "scope:100", 100 },  { "throw:50", 50 },
                { "other:70", 70 },    { "thread:200", 800 }, { "signal:30", 30 },
                { "leave", 1 },        { "library:10", 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(ways); i++) {
                _cleanup_(victim_done) Victim victim = {};
                uint32_t index = add(*state, "request");

                run(*state, &victim, ways[i].words);
                assert_int_equal(victim.status, 0);
                assert_whole(*state, index, ways[i].n);
                engine_remove(*state, index, NULL);
        }
}

/* A library has marks of its own, also of the same name. */
static void test_library(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t program = add(*state, "request");
        uint32_t library =
                engine_add(*state, MARK("TLOB_TEST_MARKER_LIBRARY", "request", "1s"), NULL);

        run(*state, &victim, "library:200 pair:30 library:2");
        assert_whole(*state, program, 30);
        assert_whole(*state, library, 202);
}

/* Two marks overlap as they like. */
static void test_in_a_handler(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t request = add(*state, "request"), handler = add(*state, "handler");

        run(*state, &victim, "signal:100");
        assert_whole(*state, request, 100);
        assert_whole(*state, handler, 100);
}

/* The outer window ends with the inner one, and the outer end finds none. */
static void test_nested(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(*state, "request");
        Counters c;

        run(*state, &victim, "nest:20");
        c = counters(*state, index);
        assert_int_equal(c.starts, 20);
        assert_int_equal(c.in_budget, 20);
        assert_int_equal(c.nested, 20);
        assert_int_equal(c.unmatched, 20);
}

/* The next end is taken for the one that was left out. */
static void test_longjmp(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(*state, "request");
        Counters c;

        run(*state, &victim, "jump pair:2");
        c = counters(*state, index);
        assert_int_equal(c.starts, 2);
        assert_int_equal(c.in_budget, 2);
        assert_int_equal(c.nested, 1);
        assert_int_equal(c.unmatched, 0);
}

static void test_ends_that_are_left_over(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(*state, "request");
        Counters c;

        run(*state, &victim, "end pair:1 end begin");
        c = counters(*state, index);
        assert_int_equal(c.starts, 2);
        assert_int_equal(c.in_budget, 1);
        assert_int_equal(c.unmatched, 2);
        assert_int_equal(c.ended[TLOB_END_EXIT], 1);
}

/* The window stays with the parent. */
static void test_fork(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(*state, "request");
        Counters c;

        run(*state, &victim, "fork:9");
        c = counters(*state, index);
        assert_int_equal(c.starts, 10);
        assert_int_equal(c.in_budget, 10);
        assert_int_equal(c.unmatched, 1);
        assert_int_equal(c.nested, 0);
}

static void test_exit_and_exec(void **state) {
        _cleanup_(victim_done) Victim first = {}, second = {};
        uint32_t index = add(*state, "request");
        Counters c;

        run(*state, &first, "pair:3 exit");
        run(*state, &second, "pair:4 exec");
        c = counters(*state, index);
        assert_int_equal(c.starts, 9);
        assert_int_equal(c.in_budget, 7);
        assert_int_equal(c.ended[TLOB_END_EXIT], 1);
        assert_int_equal(c.ended[TLOB_END_EXEC], 1);
}

static void test_length(void **state) {
        uint32_t index = engine_add(*state, MARK("TLOB_TEST_MARKER", "request", "1ms"), NULL);
        _cleanup_(victim_done) Victim victim = {};
        const Report *report;

        run(*state, &victim, "nap:20000000");
        assert_int_equal(victim.n_windows, 1);
        assert_int_equal(engine_count(*state, REPORT_VIOLATION, index), 1);
        assert_int_equal(engine_count(*state, REPORT_COMPLETION, index), 1);
        report = engine_report(*state, REPORT_COMPLETION, index, 0);
        assert_report_is_sound(report);
        assert_true(report->elapsed_ns >= 20 * MSEC);
        assert_true(report->elapsed_ns <= victim.windows[0].end_ns - victim.windows[0].start_ns);
        assert_true(report->spent_ns[TLOB_SLEEPING] > 10 * MSEC);
}

/* All places count in the one counter, each once, whoever shares its probe. */
static void expect_listeners(Victim *victim, const Binding *binding) {
        const BindingSites *sites = &binding->resolved.sites;
        char word[64];

        (void) snprintf(word, sizeof(word), "listeners-%zu",
                        sites->start.n_places + sites->stop.n_places);
        victim_expect(victim, word);
}

/* A program that runs begins to be measured, and ceases to be, again and again. */
static void test_listeners(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t first, second;

        program_start(&victim, path_of("TLOB_TEST_MARKER"),
                      "pair:5 look look pair:7 look pair:9 look look pair:11 look");
        victim_expect(&victim, "listeners-0");
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_(binding_freep) Binding *binding = NULL;

                first = engine_add(*state, MARK("TLOB_TEST_MARKER", "request", "1s"), &binding);
                victim_continue(&victim);
                expect_listeners(&victim, binding);
                second = add(*state, "request");
                victim_continue(&victim);
                expect_listeners(&victim, binding);
                assert_whole(*state, first, i == 0 ? 7 : 11);
                assert_whole(*state, second, i == 0 ? 7 : 11);
                engine_remove(*state, first, NULL);
                engine_remove(*state, second, NULL);
                engine_await_detached();
                victim_continue(&victim);
                if (i == 0)
                        victim_expect(&victim, "listeners-0");
        }
        victim_finish(&victim);
        assert_int_equal(victim.status, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, engine_setup, engine_teardown)

ENGINE_TESTS(mark) {
        const struct CMUnitTest tests[] = {
                TEST(test_ways),      TEST(test_library),       TEST(test_in_a_handler),
                TEST(test_nested),    TEST(test_longjmp),       TEST(test_ends_that_are_left_over),
                TEST(test_fork),      TEST(test_exit_and_exec), TEST(test_length),
                TEST(test_listeners),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
