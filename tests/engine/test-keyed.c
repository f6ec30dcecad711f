/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Windows that another thread ends than began them, against what the program does
 * (engine/juggler.c).
 */

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "binding/resolve.h"
#include "bpf/layout.h"
#include "engine.h"
#include "test.h"

#define MSEC UINT64_C(1000000)

static const char *juggler_path(void) {
        const char *path = getenv("TLOB_TEST_JUGGLER");

        if (!path)
                fail_msg("TLOB_TEST_JUGGLER does not name the program with keys.");
        return path;
}

static uint32_t add_mark(Engine *engine, const char *budget) {
        return engine_add(engine,
                          KEYS("Executable", juggler_path(), "Mark", "ball", "BudgetSec", budget),
                          NULL);
}

static uint32_t add_pair(Engine *engine, const char *start, const char *stop, const char *key) {
        return engine_add(engine,
                          KEYS("Executable", juggler_path(), "Start", start, "Stop", stop, "Key",
                               key, "BudgetSec", "1s"),
                          NULL);
}

static void run(Engine *engine, Victim *victim, const char *words) {
        program_start(victim, juggler_path(), words);
        victim_finish(victim);
        engine_collect(engine);
        assert_int_equal(victim->status, 0);
}

static Counters counters(Engine *engine, uint32_t index) {
        return engine_statistics(engine, index).counters;
}

/* Waits until so many are over their budget. */
static void expect_violations(Engine *engine, uint32_t index, uint64_t n) {
        uint64_t begin_ns = now_ns();

        while (counters(engine, index).violations < n && now_ns() - begin_ns < 20000 * MSEC)
                engine_collect(engine);
        assert_int_equal(counters(engine, index).violations, n);
}

/* So many windows, each from its begin to its end, and nothing else. */
static void assert_whole(Engine *engine, uint32_t index, uint64_t n) {
        Counters c = counters(engine, index);

        assert_int_equal(c.starts, n);
        assert_int_equal(c.in_budget + c.violated, n);
        assert_int_equal(c.nested + c.unmatched + c.over_limit, 0);
        assert_int_equal(c.ended[TLOB_END_ABANDONED] + c.ended[TLOB_END_EXIT], 0);
}

static void test_another_thread(void **state) {
        uint32_t mark = add_mark(*state, "1s");
        uint32_t call = add_pair(*state, "juggler_throw", "juggler_catch", "arg1");
        _cleanup_(victim_done) Victim victim = {};

        run(*state, &victim, "pass:500 call:300");
        assert_whole(*state, mark, 500);
        assert_whole(*state, call, 300);
}

/* Of a short integer, the rest of the register can be anything. */
static void test_short_integer(void **state) {
        Engine *engine = *state;
        uint32_t whole = add_pair(engine, "juggler_begin", "juggler_end", "arg1");
        uint32_t half = add_pair(engine, "juggler_begin", "juggler_end", "arg1:u32");
        _cleanup_(victim_done) Victim victim = {};

        run(engine, &victim, "short:40");
        assert_int_equal(counters(engine, whole).unmatched, 40);
        assert_whole(engine, half, 40);
}

/* In registers, on the stack, and as a constant. */
static void test_places_of_arguments(void **state) {
        uint32_t index = add_pair(*state, "usdt:juggler:throw", "usdt:juggler:catch", "arg2");
        _cleanup_(victim_done) Victim victim = {};

        run(*state, &victim, "probe:300");
        assert_whole(*state, index, 300);
}

static void test_crowd(void **state) {
        uint32_t index = add_mark(*state, "1s");
        _cleanup_(victim_done) Victim victim = {};

        run(*state, &victim, "crowd:2000");
        assert_whole(*state, index, 6000);
}

/* What the thread does meanwhile that began it is not known to be part of it. */
static void assert_is_keyed(const Report *report) {
        assert_int_equal(report->state, TLOB_N_STATES);
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                assert_true(report->spent_ns[i] == STATISTIC_UNKNOWN);
        assert_int_equal(report->budget, TLOB_BUDGET_TOTAL);
        assert_string_equal(report->comm, "juggler");
        assert_int_not_equal(report->cgroup_id, 0);
}

static void test_deadline(void **state) {
        Engine *engine = *state;
        uint32_t index = add_mark(engine, "5ms");
        const Report *violation, *completion;
        _cleanup_(victim_done) Victim victim = {};
        Statistics statistics;
        uint64_t length;

        run(engine, &victim, "nap:200000000");
        assert_int_equal(victim.n_windows, 1);
        length = victim.windows[0].end_ns - victim.windows[0].start_ns;
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, index), 1);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, index), 1);
        violation = engine_report(engine, REPORT_VIOLATION, index, 0);
        completion = engine_report(engine, REPORT_COMPLETION, index, 0);
        assert_is_keyed(violation);
        assert_is_keyed(completion);
        assert_int_equal(violation->id, completion->id);
        assert_int_equal(violation->tid, victim.windows[0].tid);
        /* While it was open. */
        assert_true(violation->elapsed_ns >= 5 * MSEC);
        assert_true(machine_is_emulated() || violation->elapsed_ns < completion->elapsed_ns);
        assert_true(completion->elapsed_ns >= 200 * MSEC);
        assert_true(completion->elapsed_ns <= length);
        assert_int_equal(completion->end, TLOB_END_STOP);
        statistics = engine_statistics(engine, index);
        assert_true(statistics.max_ns == completion->elapsed_ns);
        assert_true(statistics.counters.spent_ns[TLOB_RUNNING] == STATISTIC_UNKNOWN);
        assert_true(statistics.counters.elapsed_ns == completion->elapsed_ns);
}

/* The address of a ball that was dropped comes again with another one. */
static void test_lost_end(void **state) {
        uint32_t index = add_mark(*state, "1s");
        _cleanup_(victim_done) Victim victim = {};
        Counters c;

        run(*state, &victim, "begin:7 begin:8 begin:7 end:8 end:7 end:7");
        c = counters(*state, index);
        assert_int_equal(c.starts, 3);
        assert_int_equal(c.in_budget, 2);
        assert_int_equal(c.ended[TLOB_END_ABANDONED], 1);
        assert_int_equal(c.unmatched, 1);
}

static void test_exit(void **state) {
        uint32_t index = add_mark(*state, "1s");
        _cleanup_(victim_done) Victim victim = {}, again = {};

        run(*state, &victim, "lose:40 pass:2");
        assert_int_equal(counters(*state, index).ended[TLOB_END_EXIT], 40);
        run(*state, &again, "lose:3 exec");
        assert_int_equal(counters(*state, index).ended[TLOB_END_EXEC], 3);
        assert_int_equal(engine_statistics(*state, index).open, 0);
        assert_int_equal(counters(*state, index).in_budget, 2);
}

/* A child has the same addresses, and other windows. */
static void test_fork(void **state) {
        uint32_t index = add_mark(*state, "1s");
        _cleanup_(victim_done) Victim victim = {};
        Counters c;

        run(*state, &victim, "fork:20 end:20");
        c = counters(*state, index);
        assert_int_equal(c.starts, 2);
        assert_int_equal(c.in_budget, 1);
        assert_int_equal(c.unmatched, 1);
        assert_int_equal(c.ended[TLOB_END_EXIT], 1);
}

/* One that loses all of its ends leaves slots for others, and gets them back. */
static void test_limit(void **state) {
        uint32_t index = add_mark(*state, "1s");
        _cleanup_(victim_done) Victim victim = {};
        Counters c;

        for (unsigned i = 0; i < 3; i++) {
                _cleanup_(victim_done) Victim loser = {};

                run(*state, &loser, "lose:1000");
        }
        c = counters(*state, index);
        assert_int_equal(c.starts, 3000);
        assert_int_equal(c.ended[TLOB_END_EXIT], 3 * ENGINE_TASKS_MAX / 4);
        assert_int_equal(c.over_limit, 3000 - c.ended[TLOB_END_EXIT]);
        run(*state, &victim, "pass:100");
        assert_int_equal(counters(*state, index).in_budget, 100);
}

static void ignore_report(const Report *report, void *userdata) {
}

/* When there is no room, what has been open for far too long makes some. */
static void test_stale(void **state) {
        Engine *engine = *state;
        const uint64_t n = ENGINE_TASKS_MAX / 4;
        uint32_t quick = add_mark(engine, "20ms"), slow = add_mark(engine, "1s");
        _cleanup_(victim_done) Victim victim = {};
        BackendNotice notice;
        uint64_t begin_ns;
        Counters c;

        program_start(&victim, juggler_path(), "lose:150 say:full pass:5 say:asked pass:100");
        victim_expect(&victim, "full");
        begin_ns = now_ns();
        expect_violations(engine, quick, n);
        expect_violations(engine, slow, n);
        while (now_ns() - begin_ns < TLOB_STALE_NS + 100 * MSEC)
                engine_collect(engine);
        c = counters(engine, quick);
        assert_int_equal(c.over_limit, 150 - n);
        assert_int_equal(c.ended[TLOB_END_ABANDONED], 0);
        assert_int_equal(engine->backend->ops->next_notice(engine->backend, &notice), 1);
        assert_non_null(strstr(notice.text, "More windows with keys"));
        free(notice.text);
        assert_int_equal(engine->backend->ops->next_notice(engine->backend, &notice), 0);

        victim_continue(&victim);
        victim_expect(&victim, "asked");
        assert_true(engine->backend->ops->dispatch(engine->backend, ignore_report, NULL) >= 0);
        victim_continue(&victim);
        victim_finish(&victim);
        engine_collect(engine);
        c = counters(engine, quick);
        assert_int_equal(c.starts, 150 + 5 + 100);
        assert_int_equal(c.over_limit, 150 - n + 5);
        assert_int_equal(c.ended[TLOB_END_ABANDONED], n);
        assert_int_equal(c.in_budget + c.violated, 100);
        c = counters(engine, slow);
        assert_int_equal(c.over_limit, 150 - n + 5 + 100);
        assert_int_equal(c.ended[TLOB_END_ABANDONED], 0);
        assert_int_equal(c.ended[TLOB_END_EXIT], n);
}

/* A kernel may have memory for a few timers only: the windows in other slots are found as well. */
static void test_many_deadlines(void **state) {
        Engine *engine = *state;
        const uint64_t n = ENGINE_TASKS_MAX / 4;
        uint32_t index = add_mark(engine, "20ms");
        _cleanup_(victim_done) Victim victim = {};

        program_start(&victim, juggler_path(), "lose:128 say:lost");
        victim_expect(&victim, "lost");
        expect_violations(engine, index, n);
        victim_continue(&victim);
        victim_finish(&victim);
}

/* One that hangs is found beside many that do not. */
static void test_flood(void **state) {
        Engine *engine = *state;
        uint32_t index = add_mark(engine, "300ms");
        _cleanup_(victim_done) Victim victim = {}, flood = {};
        Report report;

        program_start(&flood, juggler_path(), "flood:2000");
        program_start(&victim, juggler_path(), "nap:1500000000");
        victim_finish(&victim);
        victim_finish(&flood);
        engine_collect(engine);
        for (size_t i = 0;; i++) {
                report = *engine_report(engine, REPORT_VIOLATION, index, i);
                if (report.tid == victim.windows[0].tid)
                        break;
        }
        assert_true(report.elapsed_ns >= 300 * MSEC);
        /* While it was open. */
        assert_true(machine_is_emulated() ||
                    report.elapsed_ns < engine_completion(engine, &report)->elapsed_ns);
        assert_int_equal(counters(engine, index).over_limit, 0);
}

/* However many bindings there are at one place. */
static void test_same_place(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index[7];

        for (size_t i = 0; i < ELEMENTSOF(index); i++)
                index[i] = i % 2 == 0 ? add_pair(*state, "juggler_throw", "juggler_catch", "arg1")
                                      : engine_add(*state,
                                                   KEYS("Executable", juggler_path(), "Start",
                                                        "juggler_throw", "Stop", "juggler_catch",
                                                        "BudgetSec", "1s"),
                                                   NULL);
        run(*state, &victim, "call:50");
        for (size_t i = 0; i < ELEMENTSOF(index); i++) {
                Counters c = counters(*state, index[i]);

                if (i % 2 == 0)
                        assert_whole(*state, index[i], 50);
                else
                        /* Without a key, it ends in another thread. */
                        assert_int_equal(c.starts + c.nested, 50);
        }
}

/* With windows open, of which one is over its budget. */
static void test_removed(void **state) {
        Engine *engine = *state;
        uint32_t index = add_mark(engine, "1ms"), other;
        _cleanup_(victim_done) Victim victim = {};
        const Report *completion;
        Statistics final;

        program_start(&victim, juggler_path(), "begin:1 begin:2 say:begun end:1 end:2 pass:50");
        victim_expect(&victim, "begun");
        expect_violations(engine, index, 2);
        engine_remove(engine, index, &final);
        assert_int_equal(final.counters.ended[TLOB_END_REMOVED], 2);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, index), 2);
        completion = engine_report(engine, REPORT_COMPLETION, index, 0);
        assert_int_equal(completion->end, TLOB_END_REMOVED);
        assert_is_keyed(completion);
        other = add_mark(engine, "1s");
        victim_continue(&victim);
        victim_finish(&victim);
        assert_int_equal(counters(engine, other).in_budget, 50);
        assert_int_equal(counters(engine, other).unmatched, 2);
}

/* A shorter budget holds for what is open. */
static void test_set_budget(void **state) {
        Engine *engine = *state;
        uint64_t budgets[TLOB_N_BUDGETS];
        uint32_t index = add_mark(engine, "infinity");
        _cleanup_(victim_done) Victim victim = {};

        program_start(&victim, juggler_path(), "begin:1 say:begun end:1");
        victim_expect(&victim, "begun");
        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                budgets[i] = i == TLOB_BUDGET_TOTAL ? MSEC : BUDGET_NONE;
        assert_ok(engine->backend->ops->set_budget(engine->backend, index, budgets));
        expect_violations(engine, index, 1);
        victim_continue(&victim);
        victim_finish(&victim);
        assert_int_equal(counters(engine, index).violated, 1);
}

static void assert_refused(const char *const *keys, const char *words) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *reason = NULL;

        assert_ok(binding_new("other", &binding));
        engine_set_keys(binding, keys);
        assert_true(binding_resolve(binding, &file, &reason) < 0);
        assert_non_null(reason);
        if (!strstr(reason, words))
                fail_msg("\"%s\" does not say \"%s\"", reason, words);
}

#define REFUSED(words, ...)                                                                        \
        assert_refused(KEYS("Executable", juggler_path(), "BudgetSec", "1s", __VA_ARGS__), words)

#ifdef __x86_64__
#define SECOND_INSTRUCTION "+1"
#else
#define SECOND_INSTRUCTION "+4"
#endif

static void test_refused(void **state) {
        (void) state;
        REFUSED("has a key at some of its places only", "Mark", "torch");
        REFUSED("has no arg3, but only", "Start", "usdt:juggler:throw", "Stop",
                "usdt:juggler:catch", "Key", "arg3");
        REFUSED("only the first 6 arguments", "Start", "juggler_throw", "Stop", "juggler_catch",
                "Key", "arg7");
        REFUSED("not the beginning of a function", "Start", "juggler_throw", "Stop",
                "juggler_catch" SECOND_INSTRUCTION, "Key", "arg1");
        REFUSED("not possible with Stop=return", "Function", "juggler_throw", "Key", "arg1");
        REFUSED("no budget of a state", "Mark", "ball", "SleepingBudgetSec", "1ms");
        REFUSED("a budget of a state", "Start", "juggler_throw", "Stop", "juggler_catch", "Key",
                "arg1", "RunningBudgetSec", "1ms");
        REFUSED("Backend=kernel", "Start", "juggler_throw", "Stop", "juggler_catch", "Key", "arg1",
                "Backend", "kernel");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, engine_setup, engine_teardown)

ENGINE_TESTS(keyed) {
        const struct CMUnitTest tests[] = {
                TEST(test_another_thread), TEST(test_places_of_arguments),
                TEST(test_short_integer),  TEST(test_crowd),
                TEST(test_deadline),       TEST(test_lost_end),
                TEST(test_exit),           TEST(test_fork),
                TEST(test_limit),          TEST(test_many_deadlines),
                TEST(test_flood),          TEST(test_same_place),
                TEST(test_removed),        TEST(test_set_budget),
                TEST(test_refused),        TEST(test_stale),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
