/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Why a window took so long: where a sleeper was blocked, who woke it, who took the CPU of a
 * waiter. The test is one of the tasks that are told, so that it knows what is true.
 */

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "bpf/backend.h"
#include "engine.h"
#include "report/cause.h"
#include "test.h"

/* The last violation and the last completion, with their causes. */
typedef struct Told {
        Report violation, completion;
        Cause why, why_at_last;
} Told;

static void told_done(Told *told) {
        cause_done(&told->why);
        cause_done(&told->why_at_last);
}

static void on_report(const Report *report, void *userdata) {
        Told *told = userdata;
        Cause *cause = report->type == REPORT_VIOLATION ? &told->why : &told->why_at_last;

        assert_report_is_sound(report);
        cause_done(cause);
        assert_int_equal(cause_make(report->stack, &report->peers, cause), 0);
        *(report->type == REPORT_VIOLATION ? &told->violation : &told->completion) = *report;
}

/*
 * Some of what there is: readers take turns with others, and may leave the rest for the next time.
 */
static void dispatch(Engine *engine, Told *told) {
        assert_true(engine->backend->ops->dispatch(engine->backend, on_report, told) >= 0);
}

/* All that there is. */
static void read_all(Engine *engine, Told *told) {
        assert_true(engine->backend->ops->flush(engine->backend, on_report, told) >= 0);
}

static void wait_for_violation(Engine *engine, Told *told) {
        struct pollfd fd = { .fd = engine->backend->ops->get_fd(engine->backend),
                             .events = POLLIN };

        while (told->violation.id == 0) {
                assert_int_equal(poll(&fd, 1, 10000), 1);
                dispatch(engine, told);
        }
}

/* Of one state, so that it is in that state that the budget runs out, however slow the machine. */
static uint32_t add(Engine *engine, const char *key, const char *budget) {
        const char *const keys[] = {
                "Executable", "%v", "Function", "victim_a", "BudgetSec",
                "infinity",   key,  budget,     NULL,
        };

        return engine_add(engine, keys, NULL);
}

static void assert_peer(const char *peer, const char *name, pid_t tid) {
        char expected[64];

        (void) snprintf(expected, sizeof(expected), "%s[%i]", name, tid);
        assert_non_null(peer);
        assert_string_equal(peer, expected);
}

static bool stack_has(const Cause *cause, const char *function) {
        for (char **frame = cause->stack; frame && *frame; frame++)
                if (strstr(*frame, function))
                        return true;
        return false;
}

static void test_a_sleeper_is_woken_by_the_clock(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;

        (void) add(engine, "SleepingBudgetSec", "5ms");
        victim_start(&victim, "a( sleep:300000000 )");
        victim_finish(&victim);
        read_all(engine, &told);

        assert_int_equal(told.violation.state, TLOB_SLEEPING);
        assert_non_null(told.why.blocked_in);
        assert_non_null(strstr(told.why.blocked_in, "nanosleep"));
        assert_non_null(told.why.stack);
        assert_true(stack_has(&told.why, "clock_nanosleep"));
        assert_null(told.why.woken_by);
        assert_non_null(told.why_at_last.woken_by);
        assert_string_equal(told.why_at_last.woken_by, "interrupt");
}

static void test_a_sleeper_is_woken_by_a_task(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;

        (void) add(engine, "SleepingBudgetSec", "5ms");
        victim_start(&victim, "a( say:ready )");
        victim_expect(&victim, "ready");
        wait_for_violation(engine, &told);
        victim_continue(&victim);
        victim_finish(&victim);
        read_all(engine, &told);

        assert_int_equal(told.violation.state, TLOB_SLEEPING);
        assert_non_null(told.why.blocked_in);
        assert_non_null(strstr(told.why.blocked_in, "pipe"));
        assert_peer(told.why_at_last.woken_by, program_invocation_short_name, getpid());
}

/* Whoever stops it, it is not its own sleep. */
static void test_a_sleeper_is_stopped(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;

        (void) add(engine, "SleepingBudgetSec", "200ms");
        victim_start(&victim, "a( stop )");
        wait_for_violation(engine, &told);
        assert_int_equal(kill(victim.pid, SIGCONT), 0);
        victim_finish(&victim);

        assert_int_equal(told.violation.state, TLOB_SLEEPING);
        assert_non_null(told.why.blocked_in);
        assert_memory_equal(cause_words_for(told.why.blocked_in), "stopped", strlen("stopped"));
}

static void prefer(const Victim *victim, int priority) {
        const struct sched_param parameter = { .sched_priority = priority };

        if (sched_setscheduler(victim->pid, SCHED_FIFO, &parameter) < 0)
                fail_msg("SCHED_FIFO is not allowed here.");
}

/*
 * Both want the same CPU, and wait to be told. Whatever else the machine does, nobody but the other
 * one takes it from the victim.
 */
static void start_rivals(Victim *victim, const char *words, Victim *other,
                         const char *other_words) {
        victim_start(victim, words);
        victim_expect(victim, "ready");
        victim_start(other, other_words);
        victim_expect(other, "ready");
        prefer(victim, 1);
        prefer(other, 2);
}

static void test_a_waiter_was_preempted(void **state) {
        _cleanup_(victim_done) Victim victim = {}, other = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;
        pid_t tid;

        /* More than the other one needs, on a slow machine, to fall asleep. */
        (void) add(engine, "WaitingBudgetSec", "40ms");
        start_rivals(&victim, "pin:0 say:ready a( burn:500000000 )", &other,
                     "pin:0 say:ready sleep:50000000 spin:200000000");
        tid = other.pid;
        victim_continue(&victim);
        victim_continue(&other);
        wait_for_violation(engine, &told);

        assert_int_equal(told.violation.state, TLOB_WAITING);
        assert_peer(told.why.preempted_by, "victim", tid);
        assert_null(told.why.blocked_in);
        victim_finish(&other);
        victim_finish(&victim);
        read_all(engine, &told);
}

/* What a task did before its window is not the window's fault. */
static void test_a_cause_belongs_to_its_window(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;

        (void) add(engine, "BudgetSec", "5ms");
        victim_start(&victim, "a( sleep:20000000 ) a( burn:10000000 )");
        victim_finish(&victim);
        read_all(engine, &told);

        assert_int_not_equal(told.completion.state, TLOB_SLEEPING);
        assert_int_equal(told.completion.spent_ns[TLOB_SLEEPING], 0);
        assert_null(told.why_at_last.woken_by);
        assert_null(told.why_at_last.blocked_in);
}

/* It sleeps again, and is woken by others: that has nothing to do with it. */
static void test_the_sleep_in_which_it_ran_out(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;

        /* Far more than the first sleep, which the clock ends, takes in an emulator. */
        (void) add(engine, "SleepingBudgetSec", "300ms");
        victim_start(&victim, "a( sleep:1000000 say:ready sleep:1000000 sleep:1000000 )");
        victim_expect(&victim, "ready");
        wait_for_violation(engine, &told);
        victim_continue(&victim);
        victim_finish(&victim);
        read_all(engine, &told);

        assert_peer(told.why_at_last.woken_by, program_invocation_short_name, getpid());
}

/* A budget that ran out while it ran: nobody has ended a sleep in which it did. */
static void test_a_runner_was_not_woken(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;

        (void) add(engine, "RunningBudgetSec", "5ms");
        victim_start(&victim, "a( sleep:1000000 burn:30000000 sleep:1000000 )");
        victim_finish(&victim);
        read_all(engine, &told);

        assert_int_equal(told.violation.budget, TLOB_BUDGET_RUNNING);
        assert_null(told.why.woken_by);
        assert_null(told.why_at_last.woken_by);
}

/*
 * It ran out while the task ran, and is found later, when it sleeps: nobody has ended a sleep in
 * which it did.
 */
static void test_found_late_in_a_sleep(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;

        (void) add(engine, "BudgetSec", "1ms");
        for (unsigned i = 0; i < 20; i++) {
                victim_start(&victim, "a( spin:1300000 sleep:20000000 )");
                victim_finish(&victim);
                read_all(engine, &told);
                assert_null(told.why.woken_by);
                assert_null(told.why_at_last.woken_by);
                victim_done(&victim);
                victim = (Victim) {};
        }
}

static void move(const Victim *victim, unsigned cpu) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        assert_int_equal(sched_setaffinity(victim->pid, sizeof(set), &set), 0);
}

/* What others do next depends on this program, which gets its CPU at once. */
static void hold_nobody_up(bool now) {
        const struct sched_param priority = { .sched_priority = now ? 9 : 0 };

        assert_int_equal(sched_setscheduler(0, now ? SCHED_FIFO : SCHED_OTHER, &priority), 0);
}

/* A window that ends with its binding has the same to tell as others. */
static void test_a_waiter_loses_its_binding(void **state) {
        _cleanup_(victim_done) Victim victim = {}, other = {};
        Engine *engine = *state;
        uint32_t index = add(engine, "WaitingBudgetSec", "40ms");
        const Report *completion;
        pid_t tid;

        start_rivals(&victim, "pin:0 a( say:ready burn:300000000 say:inside )", &other,
                     "pin:0 say:ready spin:200000000");
        tid = other.pid;
        hold_nobody_up(true);
        victim_continue(&victim);
        victim_continue(&other);
        hold_nobody_up(false);
        victim_finish(&other);
        victim_expect(&victim, "inside");
        engine_remove(engine, index, NULL);

        completion = engine_report(engine, REPORT_COMPLETION, index, 0);
        assert_int_equal(completion->end, TLOB_END_REMOVED);
        assert_string_equal(completion->comm, "victim");
        assert_true(completion->peers.preempted_by.is_known);
        assert_int_equal(completion->peers.preempted_by.tid, tid);
        victim_continue(&victim);
        victim_finish(&victim);
}

/*
 * It waits for one CPU, and then for another, for longer: whoever had the first had not the second.
 */
static void test_a_waiter_is_moved(void **state) {
        _cleanup_(victim_done) Victim victim = {}, first = {}, second = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;
        char name[32];

        (void) add(engine, "WaitingBudgetSec", "1ms");
        victim_start(&victim, "pin:0 a( say:ready burn:50000000 )");
        victim_expect(&victim, "ready");
        victim_start(&first, "pin:0 say:ready spin:500000000");
        victim_expect(&first, "ready");
        prefer(&first, 3);
        /* The first has not more than half of the time, also where this program stands still. */
        victim_start(&second, "pin:1 say:ready spin:3000000000");
        victim_expect(&second, "ready");
        prefer(&second, 2);
        /* Each of them alone has its CPU now. */
        hold_nobody_up(true);
        victim_continue(&second);
        victim_continue(&victim);
        (void) usleep(5000);
        victim_continue(&first);
        (void) usleep(10000);
        move(&victim, 1);
        (void) snprintf(name, sizeof(name), "victim[%i]", first.pid);
        hold_nobody_up(false);
        victim_finish(&first);
        victim_finish(&second);
        victim_finish(&victim);
        read_all(engine, &told);

        assert_true(told.completion.spent_ns[TLOB_WAITING] > 100000000);
        if (told.why_at_last.preempted_by)
                assert_string_not_equal(told.why_at_last.preempted_by, name);
}

/*
 * Not the first who had its CPU, and not the last: but a CPU can stand still under any of them,
 * which sees that itself.
 */
static void test_who_had_the_cpu_for_most_of_the_wait(void **state) {
        static const char *const spins[] = {
                "pin:0 say:ready b( spin:20000000 )",
                "pin:0 say:ready b( spin:200000000 )",
                "pin:0 say:ready b( spin:20000000 )",
        };
        _cleanup_(victim_done) Victim victim = {};
        Victim others[ELEMENTSOF(spins)] = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;
        Window longest = {};

        (void) add(engine, "WaitingBudgetSec", "5ms");
        victim_start(&victim, "pin:0 a( say:ready burn:100000000 )");
        victim_expect(&victim, "ready");
        for (size_t i = 0; i < ELEMENTSOF(spins); i++) {
                victim_start(&others[i], spins[i]);
                victim_expect(&others[i], "ready");
                prefer(&others[i], 5 - (int) i);
        }
        prefer(&victim, 1);
        hold_nobody_up(true);
        victim_continue(&victim);
        for (size_t i = 0; i < ELEMENTSOF(spins); i++)
                victim_continue(&others[i]);
        hold_nobody_up(false);
        for (size_t i = 0; i < ELEMENTSOF(spins); i++) {
                const Window *spin;

                victim_finish(&others[i]);
                assert_int_equal(others[i].n_windows, 1);
                spin = &others[i].windows[0];
                if (spin->end_ns - spin->start_ns > longest.end_ns - longest.start_ns)
                        longest = *spin;
                victim_done(&others[i]);
        }
        victim_finish(&victim);
        read_all(engine, &told);

        assert_int_equal(told.violation.budget, TLOB_BUDGET_WAITING);
        assert_peer(told.why_at_last.preempted_by, "victim", (pid_t) longest.tid);
}

/* Who looks is to be on another CPU than whom it looks at, who would wait for it. */
static void leave_cpu(int cpu, bool now) {
        cpu_set_t set;

        CPU_ZERO(&set);
        for (int i = 0; i < CPU_SETSIZE; i++)
                CPU_SET(i, &set);
        if (now)
                CPU_CLR(cpu, &set);
        (void) sched_setaffinity(0, sizeof(set), &set);
}

static bool nobody_waits(const struct tlob_bpf__bss *bss) {
        _cleanup_(victim_done) Victim victim = {};
        bool is_none = false;

        victim_start(&victim, "pin:0 a( say:inside spin:1000000000 )");
        victim_expect(&victim, "inside");
        leave_cpu(0, true);
        victim_continue(&victim);
        for (unsigned i = 0; i < 500 && !is_none; i++) {
                (void) usleep(1000);
                is_none = __atomic_load_n(&bss->n_waiters, __ATOMIC_RELAXED) == 0;
        }
        victim_finish(&victim);
        leave_cpu(0, false);
        return is_none;
}

/*
 * Else each switch of the machine would look for whom it is on the way, for as long as it runs. The
 * kernel of a virtual machine may not say that a task got its CPU: then it is looked at once more.
 */
static void test_who_runs_waits_no_longer(void **state) {
        Engine *engine = *state;
        const struct tlob_bpf__bss *bss = ((const BpfBackend *) engine->backend)->programs.bpf->bss;
        bool is_none, is_missed;
        unsigned tries = 0;

        (void) add(engine, "BudgetSec", "1min");
        do {
                uint64_t before = __atomic_load_n(&bss->n_missed_switches, __ATOMIC_RELAXED);

                is_none = nobody_waits(bss);
                is_missed = __atomic_load_n(&bss->n_missed_switches, __ATOMIC_RELAXED) != before;
        } while (!is_none && is_missed && ++tries < 5);
        assert_true(is_none);
}

ENGINE_TESTS(cause) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_sleeper_is_woken_by_the_clock, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_sleeper_is_woken_by_a_task, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_sleeper_is_stopped, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_waiter_was_preempted, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_waiter_loses_its_binding, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_cause_belongs_to_its_window, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_the_sleep_in_which_it_ran_out, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_runner_was_not_woken, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_found_late_in_a_sleep, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_waiter_is_moved, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_who_had_the_cpu_for_most_of_the_wait,
                                                engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_who_runs_waits_no_longer, engine_setup,
                                                engine_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
