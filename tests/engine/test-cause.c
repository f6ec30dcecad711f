/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Why a window took so long: where a sleeper was blocked, who woke it, who took the CPU of a waiter. The
 * test is one of the tasks that are told, so that it knows what is true.
 */

#include <poll.h>
#include <sched.h>

#include "cause.h"
#include "engine.h"
#include "kernel-symbols.h"
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

static void dispatch(Engine *engine, Told *told) {
        assert_true(engine->backend->ops->dispatch(engine->backend, on_report, told) >= 0);
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
static void add(Engine *engine, const char *key, const char *budget) {
        const char *const keys[] = {
                "Executable", "%v", "Function", "victim_a", "BudgetSec",
                "infinity",   key,  budget,     NULL,
        };

        (void) engine_add(engine, keys, NULL);
}

/* Can this kernel tell a task from an interrupt that came upon it? */
static bool wakers_are_known(void) {
        uint64_t begin, end;

        return kernel_interrupt_entry(&begin, &end) >= 0;
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

        add(engine, "SleepingBudgetSec", "5ms");
        victim_start(&victim, "a( sleep:300000000 )");
        victim_finish(&victim);
        dispatch(engine, &told);

        assert_int_equal(told.violation.state, TLOB_SLEEPING);
        assert_non_null(told.why.blocked_in);
        assert_non_null(strstr(told.why.blocked_in, "nanosleep"));
        assert_non_null(told.why.stack);
        assert_true(stack_has(&told.why, "clock_nanosleep"));
        assert_null(told.why.woken_by);
        if (wakers_are_known())
                assert_string_equal(told.why_at_last.woken_by, "interrupt");
}

static void test_a_sleeper_is_woken_by_a_task(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;

        add(engine, "SleepingBudgetSec", "5ms");
        victim_start(&victim, "a( say:ready )");
        victim_expect(&victim, "ready");
        wait_for_violation(engine, &told);
        victim_continue(&victim);
        victim_finish(&victim);
        dispatch(engine, &told);

        assert_int_equal(told.violation.state, TLOB_SLEEPING);
        assert_non_null(told.why.blocked_in);
        assert_non_null(strstr(told.why.blocked_in, "pipe"));
        if (wakers_are_known())
                assert_peer(told.why_at_last.woken_by, "test-cause", getpid());
}

static void prefer(const Victim *victim, int priority) {
        const struct sched_param parameter = { .sched_priority = priority };

        if (sched_setscheduler(victim->pid, SCHED_FIFO, &parameter) < 0)
                fail_msg("SCHED_FIFO is not allowed here.");
}

static void test_a_waiter_was_preempted(void **state) {
        _cleanup_(victim_done) Victim victim = {}, other = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;
        pid_t tid;

        add(engine, "WaitingBudgetSec", "5ms");
        victim_start(&victim, "pin:0 say:ready a( burn:500000000 )");
        victim_expect(&victim, "ready");
        victim_start(&other, "pin:0 say:ready sleep:50000000 spin:100000000");
        victim_expect(&other, "ready");
        /* Whatever else the machine does, nobody but the other one takes the victim's CPU. */
        prefer(&victim, 1);
        prefer(&other, 2);
        tid = other.pid;
        victim_continue(&victim);
        victim_continue(&other);
        wait_for_violation(engine, &told);

        assert_int_equal(told.violation.state, TLOB_WAITING);
        assert_peer(told.why.preempted_by, "victim", tid);
        assert_null(told.why.blocked_in);
        victim_finish(&other);
        victim_finish(&victim);
        dispatch(engine, &told);
}

/* What a task did before its window is not the window's fault. */
static void test_a_cause_belongs_to_its_window(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        _cleanup_(told_done) Told told = {};
        Engine *engine = *state;

        add(engine, "BudgetSec", "5ms");
        victim_start(&victim, "a( sleep:20000000 ) a( burn:10000000 )");
        victim_finish(&victim);
        dispatch(engine, &told);

        assert_int_not_equal(told.completion.state, TLOB_SLEEPING);
        assert_int_equal(told.completion.spent_ns[TLOB_SLEEPING], 0);
        assert_null(told.why_at_last.woken_by);
        assert_null(told.why_at_last.blocked_in);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_sleeper_is_woken_by_the_clock, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_sleeper_is_woken_by_a_task, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_waiter_was_preempted, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_cause_belongs_to_its_window, engine_setup,
                                                engine_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
