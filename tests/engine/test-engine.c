/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Real probes on a real program. Each test sets bindings on the victim, lets it do something known,
 * and compares what was reported and counted with what the victim knows of itself. What takes how
 * long is never judged against the clock of a busy machine, only against the victim's own record:
 * a window is at least as long as what the victim measured inside it.
 */

#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>

#include "bpf/layout.h"
#include "engine.h"
#include "test.h"

static void assert_matches(const Report *report, const Window *window) {
        assert_true(report->elapsed_ns >= window->end_ns - window->start_ns);
        assert_true(report->time_ns >= window->end_ns);
        assert_true(report->time_ns - report->elapsed_ns <= window->start_ns);
}

/*
 * nanosleep() promises that so much time goes by, not that all of it is slept: the clock begins to
 * run when the timer is set, and on a slow machine it can be a while until the task leaves its CPU.
 */
static void assert_slept(const Report *report, uint64_t ns) {
        assert_true(report->elapsed_ns >= ns);
        assert_true(report->spent_ns[TLOB_SLEEPING] >= ns / 2);
}

/*
 * The victim spins for so long in a window of a; meanwhile the other one, which has the better
 * policy, takes its CPU away and spins there.
 */
static void start_waiter(Victim *victim, Victim *other, const char *other_ns,
                         const char *victim_ns) {
        const struct sched_param parameter = { .sched_priority = 1 };
        char words[128];

        (void) snprintf(words, sizeof(words), "pin:0 a( say:inside spin:%s )", victim_ns);
        victim_start(victim, words);
        victim_expect(victim, "inside");
        (void) snprintf(words, sizeof(words), "pin:0 say:ready spin:%s", other_ns);
        victim_start(other, words);
        victim_expect(other, "ready");
        if (sched_setscheduler(other->pid, SCHED_FIFO, &parameter) < 0)
                fail_msg("SCHED_FIFO is not allowed here.");
        victim_continue(victim);
        victim_continue(other);
}

static void test_in_budget_is_counted_and_not_reported(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "10s"), NULL);
        Statistics s;

        engine_run(engine, &victim, "repeat:1000 ( a( ) )");
        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.starts, 1000);
        assert_int_equal(s.counters.in_budget, 1000);
        assert_int_equal(s.counters.violations, 0);
        assert_int_equal(engine->n_reports, 0);
        assert_true(s.max_ns > 0);
}

static void test_sleeping(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1ms"), NULL);
        const Report *violation, *completion;

        engine_run(engine, &victim, "a( sleep:500000000 )");
        violation = engine_report(engine, REPORT_VIOLATION, a, 0);
        completion = engine_report(engine, REPORT_COMPLETION, a, 0);
        assert_int_equal(engine->n_reports, 2);
        assert_matches(completion, &victim.windows[0]);
        assert_slept(completion, 500000000);
        assert_true(completion->spent_ns[TLOB_RUNNING] < completion->spent_ns[TLOB_SLEEPING]);
        assert_int_equal(completion->end, TLOB_END_STOP);
        assert_int_equal(completion->id, violation->id);
        assert_string_equal(completion->comm, "victim");
        assert_int_equal(engine_statistics(engine, a).counters.violated, 1);
        assert_int_equal(engine_statistics(engine, a).max_ns, completion->elapsed_ns);
}

static void test_running(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1ms"), NULL);
        const Report *completion;

        engine_run(engine, &victim, "a( spin:20000000 )");
        completion = engine_report(engine, REPORT_COMPLETION, a, 0);
        assert_matches(completion, &victim.windows[0]);
        assert_int_equal(completion->spent_ns[TLOB_SLEEPING], 0);
        assert_true(completion->spent_ns[TLOB_RUNNING] > 0);
}

static void test_waiting(void **state) {
        _cleanup_(victim_done) Victim victim = {}, other = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1ms"), NULL);
        const Report *completion;

        start_waiter(&victim, &other, "60000000", "1000000000");
        victim_finish(&other);
        victim_finish(&victim);
        engine_collect(engine);

        completion = engine_report(engine, REPORT_COMPLETION, a, 0);
        assert_matches(completion, &victim.windows[0]);
        assert_true(completion->spent_ns[TLOB_WAITING] >= 30000000);
        assert_true(completion->spent_ns[TLOB_RUNNING] > 0);
}

/* So that it is in that state that a budget runs out, however slow the machine. */
static uint32_t add_for_state(Engine *engine, const char *key, const char *budget) {
        return engine_add(
                engine,
                KEYS("Executable", "%v", "Function", "victim_a", "BudgetSec", "1min", key, budget),
                NULL);
}

static void test_state_budgets(void **state) {
        static const char *const running[] = {
                "Executable",       "%v",  "Function", "victim_a", "BudgetSec", "infinity",
                "RunningBudgetSec", "30s", NULL,
        };
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t s = add_for_state(engine, "SleepingBudgetSec", "1ms"),
                 r = engine_add(engine, running, NULL);

        /*
         * Much more: a machine that is kept from running comes to sleep late, and has slept less.
         */
        engine_run(engine, &victim, "a( sleep:100000000 )");
        assert_int_equal(engine_report(engine, REPORT_VIOLATION, s, 0)->budget,
                         TLOB_BUDGET_SLEEPING);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, r), 0);
        assert_int_equal(engine_statistics(engine, r).counters.in_budget, 1);
}

static void test_overlap(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t x = engine_add(engine, MARKERS("x", "1ms"), NULL);
        uint32_t y = engine_add(engine, MARKERS("y", "1ms"), NULL);
        uint32_t a = engine_add(engine, FUNCTION("a", "1ms"), NULL);
        uint32_t b = engine_add(engine, FUNCTION("b", "1min"), NULL);

        /* x and y cross, and so do y and a; b lies in a. */
        engine_run(engine, &victim,
                   "<x sleep:40000000 <y sleep:60000000 >x sleep:80000000 a( b( ) "
                   "sleep:100000000 >y )");
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, x), 1);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, y), 1);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, a), 1);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, b), 0);
        assert_slept(engine_report(engine, REPORT_COMPLETION, x, 0), 100000000);
        assert_slept(engine_report(engine, REPORT_COMPLETION, y, 0), 240000000);
        assert_slept(engine_report(engine, REPORT_COMPLETION, a, 0), 100000000);
        assert_int_equal(engine_statistics(engine, b).counters.in_budget, 1);
}

static void test_recursion_measures_the_outermost(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1ms"), NULL);
        Statistics s;

        engine_run(engine, &victim, "a( a( a( ) sleep:1000000 ) sleep:2000000 )");
        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.starts, 1);
        assert_int_equal(s.counters.nested, 2);
        assert_int_equal(s.counters.unmatched, 0);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, a), 1);
        assert_matches(engine_report(engine, REPORT_COMPLETION, a, 0), &victim.windows[2]);
}

/* Of calls in it that are measured, too: as much as all hits of their probes are said to cost. */
static void test_probes_inside_are_told(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1ms"), NULL);
        uint32_t storm = engine_add(engine, FUNCTION("storm", "10s"), NULL);
        uint64_t cost, told;

        engine_run(engine, &victim, "a( storm:2000 ) a( spin:2000000 )");
        cost = engine_statistics(engine, storm).cost_ns;
        told = engine_report(engine, REPORT_COMPLETION, a, 0)->probes_ns;
        print_message("in probes: %" PRIu64 " us, as told; %" PRIu64 " us, as counted\n",
                      told / 1000, cost / 1000);
        assert_true(told > 0);
        assert_true(told <= cost && told >= cost - cost / 100);
        assert_int_equal(engine_report(engine, REPORT_COMPLETION, a, 1)->probes_ns, 0);
}

/* System calls are told to programs, too, which take less. */
static void test_calls_inside_are_told(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1ms"), NULL);
        uint32_t call =
                engine_add(engine, KEYS("Syscall", "clock_nanosleep", "BudgetSec", "10s"), NULL);
        Statistics s;
        uint64_t told;

        engine_run(engine, &victim, "a( repeat:300 ( sleep:10000 ) spin:2000000 )");
        told = engine_report(engine, REPORT_COMPLETION, a, 0)->probes_ns;
        /* Others on the machine sleep, too, and while they do the books do not balance. */
        assert_ok(engine->backend->ops->statistics(engine->backend, call, &s));
        assert_true(told > 0 && told <= s.cost_ns);
}

static void test_markers_nest_and_miss(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t x = engine_add(engine, MARKERS("x", "1min"), NULL);
        Statistics s;

        engine_run(engine, &victim, ">x <x <x >x >x");
        s = engine_statistics(engine, x);
        assert_int_equal(s.counters.starts, 1);
        assert_int_equal(s.counters.in_budget, 1);
        assert_int_equal(s.counters.nested, 1);
        assert_int_equal(s.counters.unmatched, 2);
}

static void test_longjmp_abandons(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1min"), NULL);
        Statistics s;

        engine_run(engine, &victim, "repeat:10 ( jump( a( jump ) ) ) a( )");
        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.starts, 11);
        assert_int_equal(s.counters.ended[TLOB_END_ABANDONED], 10);
        assert_int_equal(s.counters.in_budget, 1);
}

static void check_end(Engine *engine, const char *words, enum tlob_end end) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t a = engine_add(engine, FUNCTION("a", "1ms"), NULL);
        uint32_t x = engine_add(engine, MARKERS("x", "1min"), NULL);
        Statistics s;

        engine_run(engine, &victim, words);
        assert_int_equal(engine_report(engine, REPORT_COMPLETION, a, 0)->end, end);
        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.ended[end], 1);
        assert_int_equal(s.counters.violations, 1);
        s = engine_statistics(engine, x);
        assert_int_equal(s.counters.ended[end], 1);
        assert_int_equal(s.counters.violations, 0);
}

static void test_exit(void **state) {
        check_end(*state, "<x a( sleep:2000000 exit )", TLOB_END_EXIT);
}

static void test_kill(void **state) {
        check_end(*state, "<x a( sleep:2000000 kill )", TLOB_END_EXIT);
}

static void test_exec(void **state) {
        check_end(*state, "<x a( sleep:2000000 exec )", TLOB_END_EXEC);
}

static void test_exec_by_a_thread(void **state) {
        check_end(*state, "thread( <x a( sleep:2000000 exec ) )", TLOB_END_EXEC);
}

static void test_fork_leaves_the_window_to_the_parent(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t x = engine_add(engine, MARKERS("x", "1min"), NULL);
        Statistics s;

        engine_run(engine, &victim, "<x fork( >x ) >x");
        s = engine_statistics(engine, x);
        assert_int_equal(s.counters.starts, 1);
        assert_int_equal(s.counters.in_budget, 1);
        assert_int_equal(s.counters.unmatched, 1);
}

static void test_threads_are_independent(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1min"), NULL);
        Statistics s;

        engine_run(engine, &victim, "a( thread( a( thread( a( ) ) ) ) )");
        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.starts, 3);
        assert_int_equal(s.counters.in_budget, 3);
        assert_int_equal(s.counters.nested, 0);
}

static void test_open_windows_are_counted(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1min"), NULL);
        Statistics s;

        victim_start(&victim, "a( say:inside )");
        victim_expect(&victim, "inside");
        s = engine_statistics(engine, a);
        assert_int_equal(s.open, 1);
        assert_int_equal(s.counters.starts, 1);
        victim_continue(&victim);
        victim_finish(&victim);
        assert_int_equal(engine_statistics(engine, a).open, 0);
}

static void test_removal_ends_open_windows(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1ms"), NULL);
        uint32_t b = engine_add(engine, FUNCTION("b", "1min"), NULL);
        Statistics s;

        victim_start(&victim, "a( b( sleep:40000000 say:inside ) )");
        victim_expect(&victim, "inside");
        engine_remove(engine, a, &s);
        assert_int_equal(s.counters.ended[TLOB_END_REMOVED], 1);
        assert_int_equal(s.counters.violations, 1);
        assert_int_equal(engine_report(engine, REPORT_COMPLETION, a, 0)->end, TLOB_END_REMOVED);
        assert_slept(engine_report(engine, REPORT_COMPLETION, a, 0), 40000000);

        victim_continue(&victim);
        victim_finish(&victim);
        engine_collect(engine);
        assert_int_equal(engine->n_reports, 2);
        assert_int_equal(engine_statistics(engine, b).counters.in_budget, 1);
}

static void test_budget_changes_for_open_windows(void **state) {
        const uint64_t budget_ns[TLOB_N_BUDGETS] = { 1000000, BUDGET_NONE, BUDGET_NONE, BUDGET_NONE,
                                                     BUDGET_NONE };
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1h"), NULL);

        victim_start(&victim, "a( say:inside sleep:2000000 )");
        victim_expect(&victim, "inside");
        assert_int_equal(engine->backend->ops->set_budget(engine->backend, a, budget_ns), 0);
        victim_continue(&victim);
        victim_finish(&victim);
        engine_collect(engine);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, a), 1);
}

static void test_more_windows_than_a_task_has_room_for(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index[TLOB_WINDOWS_MAX + 2];
        uint64_t over_limit = 0, in_budget = 0;

        for (size_t i = 0; i < ELEMENTSOF(index); i++)
                index[i] = engine_add(engine, FUNCTION("a", "1min"), NULL);
        engine_run(engine, &victim, "a( )");
        for (size_t i = 0; i < ELEMENTSOF(index); i++) {
                over_limit += engine_statistics(engine, index[i]).counters.over_limit;
                in_budget += engine_statistics(engine, index[i]).counters.in_budget;
        }
        assert_int_equal(over_limit, 2);
        assert_int_equal(in_budget, TLOB_WINDOWS_MAX);
}

/* A slot is given back when its task ends: far more tasks than there are slots. */
static void test_slots_are_given_back(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1min"), NULL);

        engine_run(engine, &victim, "repeat:2000 ( thread( a( ) ) )");
        assert_int_equal(engine_statistics(engine, a).counters.in_budget, 2000);
        assert_int_equal(engine_statistics(engine, a).counters.over_limit, 0);
}

/* The report of a window, while it is open. */
static const Report *wait_for_violation(Engine *engine, uint32_t index) {
        struct pollfd fd = { .fd = engine->backend->ops->get_fd(engine->backend),
                             .events = POLLIN };

        while (engine_count(engine, REPORT_VIOLATION, index) == 0) {
                if (poll(&fd, 1, 10000) <= 0)
                        fail_msg("No violation was reported within 10 s.");
                engine_collect(engine);
        }
        return engine_report(engine, REPORT_VIOLATION, index, 0);
}

static void check_deadline(const Report *report, uint64_t budget_ns, enum tlob_state state) {
        uint64_t spent_ns =
                report->budget == TLOB_BUDGET_TOTAL ? report->elapsed_ns : report->spent_ns[state];

        assert_int_equal(report->state, state);
        assert_int_equal(report->late_ns, spent_ns - budget_ns);
        print_message("late by %llu ns\n", (unsigned long long) report->late_ns);
}

static void test_deadline_of_a_sleeper(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = add_for_state(engine, "SleepingBudgetSec", "20ms");

        victim_start(&victim, "a( sleep:1000000000000 )");
        check_deadline(wait_for_violation(engine, a), 20000000, TLOB_SLEEPING);
        assert_int_equal(engine_statistics(engine, a).open, 1);
        assert_int_equal(engine_statistics(engine, a).counters.violations, 1);

        /* Its end is told too, and no second violation. */
        victim_done(&victim);
        engine_collect(engine);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, a), 1);
        assert_int_equal(engine_report(engine, REPORT_COMPLETION, a, 0)->end, TLOB_END_EXIT);
        assert_int_equal(engine_report(engine, REPORT_COMPLETION, a, 0)->id,
                         engine_report(engine, REPORT_VIOLATION, a, 0)->id);
}

static void test_deadline_of_a_runner(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "20ms"), NULL);
        const Report *report;

        victim_start(&victim, "a( spin:1000000000000 )");
        report = wait_for_violation(engine, a);
        assert_int_equal(report->late_ns, report->elapsed_ns - 20000000);
        print_message("late by %llu ns\n", (unsigned long long) report->late_ns);
        victim_done(&victim);
        engine_collect(engine);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, a), 1);
}

static void test_deadline_of_a_waiter(void **state) {
        _cleanup_(victim_done) Victim victim = {}, other = {};
        Engine *engine = *state;
        uint32_t a = add_for_state(engine, "WaitingBudgetSec", "20ms");

        start_waiter(&victim, &other, "1000000000000", "1000000000000");
        check_deadline(wait_for_violation(engine, a), 20000000, TLOB_WAITING);
}

static void test_deadline_of_a_state(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = add_for_state(engine, "SleepingBudgetSec", "20ms");
        const Report *report;

        victim_start(&victim, "a( spin:30000000 sleep:5000000 spin:10000000 sleep:1000000000000 )");
        report = wait_for_violation(engine, a);
        assert_int_equal(report->budget, TLOB_BUDGET_SLEEPING);
        check_deadline(report, 20000000, TLOB_SLEEPING);
}

/* A budget is set while the task sleeps, or is just about to, and nothing else happens. */
static void test_deadline_of_a_smaller_budget(void **state) {
        const uint64_t budget_ns[TLOB_N_BUDGETS] = { BUDGET_NONE, BUDGET_NONE, BUDGET_NONE,
                                                     20000000, BUDGET_NONE };
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1h"), NULL);

        victim_start(&victim, "a( say:inside )");
        victim_expect(&victim, "inside");
        assert_int_equal(engine->backend->ops->set_budget(engine->backend, a, budget_ns), 0);
        assert_int_equal(wait_for_violation(engine, a)->state, TLOB_SLEEPING);
}

/* Nobody reads while more is reported than the buffer holds. */
static void test_flood_is_counted(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1us"), NULL);
        Statistics s;
        size_t reported;

        engine_run(engine, &victim, "repeat:20000 ( a( spin:1000 ) )");
        s = engine_statistics(engine, a);
        reported = engine_count(engine, REPORT_VIOLATION, a) +
                   engine_count(engine, REPORT_COMPLETION, a);
        assert_int_equal(s.counters.starts, 20000);
        assert_int_equal(s.counters.violations, 20000);
        assert_true(s.counters.lost > 0);
        assert_int_equal(reported + s.counters.lost, 40000);
        assert_int_equal(engine->backend->ops->lost(engine->backend), s.counters.lost);
}

static void test_reset_keeps_the_books(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1min"), NULL);
        Statistics s;

        victim_start(&victim, "repeat:5 ( a( ) ) a( say:inside )");
        victim_expect(&victim, "inside");
        assert_int_equal(engine->backend->ops->reset_statistics(engine->backend, a), 0);
        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.starts, 1);
        assert_int_equal(s.max_ns, 0);
        victim_continue(&victim);
        victim_finish(&victim);
        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.starts, 1);
        assert_int_equal(s.counters.in_budget, 1);
}

static void test_an_index_is_used_again(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;

        for (size_t i = 0; i < 5; i++) {
                uint32_t a = engine_add(engine, FUNCTION("a", "1min"), NULL);

                engine_run(engine, &victim, "a( )");
                assert_int_equal(engine_statistics(engine, a).counters.starts, 1);
                engine_remove(engine, a, NULL);
                victim_done(&victim);
        }
}

/*
 * A stripped library that others wrote, found by its dynamic symbols, in a program that others
 * wrote.
 */
static void test_library_of_the_system(void **state) {
        Engine *engine = *state;
        uint32_t index = engine_add(
                engine,
                KEYS("Executable", "libc.so.6", "Function", "clock_nanosleep", "BudgetSec", "10ms"),
                NULL);
        const Report *completion = NULL;
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                execlp("sleep", "sleep", "0.05", NULL);
                _exit(127);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        engine_collect(engine);

        for (size_t i = 0; i < engine->n_reports; i++)
                if (engine->reports[i].type == REPORT_COMPLETION &&
                    engine->reports[i].pid == (uint32_t) pid)
                        completion = &engine->reports[i];
        assert_non_null(completion);
        assert_string_equal(completion->comm, "sleep");
        assert_int_equal(completion->backend_index, index);
        assert_slept(completion, 50000000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, engine_setup, engine_teardown)

ENGINE_TESTS(engine) {
        const struct CMUnitTest tests[] = {
                TEST(test_in_budget_is_counted_and_not_reported),
                TEST(test_sleeping),
                TEST(test_running),
                TEST(test_waiting),
                TEST(test_state_budgets),
                TEST(test_overlap),
                TEST(test_recursion_measures_the_outermost),
                TEST(test_probes_inside_are_told),
                TEST(test_calls_inside_are_told),
                TEST(test_markers_nest_and_miss),
                TEST(test_longjmp_abandons),
                TEST(test_exit),
                TEST(test_kill),
                TEST(test_exec),
                TEST(test_exec_by_a_thread),
                TEST(test_fork_leaves_the_window_to_the_parent),
                TEST(test_threads_are_independent),
                TEST(test_open_windows_are_counted),
                TEST(test_removal_ends_open_windows),
                TEST(test_budget_changes_for_open_windows),
                TEST(test_more_windows_than_a_task_has_room_for),
                TEST(test_slots_are_given_back),
                TEST(test_deadline_of_a_sleeper),
                TEST(test_deadline_of_a_runner),
                TEST(test_deadline_of_a_waiter),
                TEST(test_deadline_of_a_state),
                TEST(test_deadline_of_a_smaller_budget),
                TEST(test_flood_is_counted),
                TEST(test_reset_keeps_the_books),
                TEST(test_an_index_is_used_again),
                TEST(test_library_of_the_system),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
