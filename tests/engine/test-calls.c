/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Syscall=, on a program that counts its own system calls and reads the clock around them. It is
 * moved into a cgroup, like a service, before it makes the first; most tests measure
 * rt_sigtimedwait().
 */

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "bpf/backend.h"
#include "bpf/skeleton.h"
#include "engine.h"
#include "service.h"
#include "test.h"

#define MSEC UINT64_C(1000000)

#define WAIT "rt_sigtimedwait"

static void rest(unsigned ms) {
        const struct timespec ts = { .tv_nsec = (long) ms * 1000000L };

        (void) nanosleep(&ts, NULL);
}

static uint32_t add_call(Engine *engine, const char *name, const char *budget) {
        return service_add(engine, KEYS("Syscall", name, "BudgetSec", budget));
}

static const char *caller_path(void) {
        const char *path = getenv("TLOB_TEST_CALLS");

        if (!path)
                fail_msg("TLOB_TEST_CALLS does not name the program that makes system calls.");
        return path;
}

static void start(Victim *victim, const char *words) {
        service_start(victim, caller_path(), SERVICE_GROUP, words);
}

static void run(Engine *engine, Victim *victim, const char *words) {
        start(victim, words);
        victim_finish(victim);
        engine_collect(engine);
}

static Counters counters(Engine *engine, uint32_t index) {
        return engine_statistics(engine, index).counters;
}

/* While calls are made, books do not balance. */
static uint64_t starts_so_far(Engine *engine, uint32_t index) {
        Statistics statistics;

        assert_ok(engine->backend->ops->statistics(engine->backend, index, &statistics));
        return statistics.counters.starts;
}

/* The completion of the window of that record. */
static const Report *completion_in(Engine *engine, uint32_t index, const Window *record) {
        for (size_t i = 0; i < engine_count(engine, REPORT_COMPLETION, index); i++) {
                const Report *report = engine_report(engine, REPORT_COMPLETION, index, i);

                if (report->tid == record->tid && report->time_ns >= record->start_ns &&
                    report->time_ns <= record->end_ns)
                        return report;
        }
        fail_msg("A call was not reported.");
        return NULL;
}

static void assert_length(const Report *report, const Window *record, uint64_t least_ns) {
        assert_int_equal(report->end, TLOB_END_STOP);
        assert_true(report->elapsed_ns >= least_ns);
        assert_true(report->elapsed_ns <= record->end_ns - record->start_ns);
}

static void check_lengths(Engine *engine, const char *path) {
        uint32_t index = add_call(engine, WAIT, "1ms");
        _cleanup_(victim_done) Victim victim = {};
        static const uint64_t lengths[] = { 3, 5, 9, 2 };
        Counters c;

        service_start(&victim, path, SERVICE_GROUP,
                      "try:1000 wait:3000000 wait:5000000 try:1000 wait:9000000 wait:2000000");
        victim_finish(&victim);
        engine_collect(engine);
        c = counters(engine, index);
        assert_int_equal(c.starts, 2004);
        assert_int_equal(c.in_budget + c.violated, 2004);
        assert_int_equal(c.nested + c.unmatched, 0);
        assert_int_equal(victim.n_windows, ELEMENTSOF(lengths));
        for (size_t i = 0; i < ELEMENTSOF(lengths); i++)
                assert_length(completion_in(engine, index, &victim.windows[i]), &victim.windows[i],
                              lengths[i] * MSEC);
}

static void test_calls_are_counted_and_are_as_long_as_they_are(void **state) {
        check_lengths(*state, caller_path());
}

static void test_a_static_program_that_is_stripped(void **state) {
        char path[4096];

        (void) snprintf(path, sizeof(path), "%s-static", caller_path());
        check_lengths(*state, path);
}

static void test_a_budget_runs_out_in_a_call(void **state) {
        Engine *engine = *state;
        uint32_t index = service_add(engine, KEYS("Syscall", WAIT, "SleepingBudgetSec", "20ms"));
        _cleanup_(victim_done) Victim victim = {};
        const Report *report;
        uint64_t open_ns;

        start(&victim, "thread:600000000000 say:in join");
        victim_expect(&victim, "in");
        while (engine_count(engine, REPORT_VIOLATION, index) == 0) {
                rest(5);
                engine_collect(engine);
        }
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, index), 0);
        assert_int_equal(engine_statistics(engine, index).open, 1);
        open_ns = now_ns();
        victim_continue(&victim);
        victim_finish(&victim);
        engine_collect(engine);
        report = engine_report(engine, REPORT_VIOLATION, index, 0);
        assert_int_equal(report->state, TLOB_SLEEPING);
        assert_true(report->spent_ns[TLOB_SLEEPING] >= 20 * MSEC);
        assert_length(engine_completion(engine, report), &victim.windows[0],
                      open_ns - (report->time_ns - report->elapsed_ns));
}

/*
 * The task has had its CPU for longer than the call takes, and nobody has taken it: its deadline is
 * no later for that.
 */
static void test_a_budget_runs_out_in_a_call_of_who_has_run_for_long(void **state) {
        Engine *engine = *state;
        uint32_t index = add_call(engine, WAIT, "20ms");
        const struct sched_param parameter = { .sched_priority = 1 };
        _cleanup_(victim_done) Victim victim = {};
        const Report *report;

        start(&victim, "say:ready try:1 spin:600000000 wait:400000000");
        victim_expect(&victim, "ready");
        assert_int_equal(sched_setscheduler(victim.pid, SCHED_FIFO, &parameter), 0);
        victim_continue(&victim);
        victim_finish(&victim);
        engine_collect(engine);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, index), 1);
        report = engine_report(engine, REPORT_VIOLATION, index, 0);
        assert_int_equal(report->state, TLOB_SLEEPING);
        assert_true(report->elapsed_ns < 400 * MSEC);
}

/* Calls of others are known for what they cost. */
static void test_calls_of_other_units(void **state) {
        Engine *engine = *state;
        uint32_t index = add_call(engine, WAIT, "1s"), everybody;
        _cleanup_(victim_done) Victim victim = {};

        service_start(&victim, caller_path(), OTHER_GROUP, "try:100");
        victim_finish(&victim);
        assert_int_equal(counters(engine, index).starts, 0);
        assert_true(counters(engine, index).outside >= 100);

        everybody = engine_add(engine, KEYS("Syscall", WAIT, "BudgetSec", "1s"), NULL);
        victim_done(&victim);
        service_start(&victim, caller_path(), OTHER_GROUP, "try:100");
        victim_finish(&victim);
        victim_done(&victim);
        run(engine, &victim, "try:50");
        assert_int_equal(counters(engine, index).starts, 50);
        assert_true(counters(engine, everybody).starts >= 150);
}

/* Of another ABI: it has another number. */
static void test_calls_of_x32(void **state) {
        Engine *engine = *state;
        uint32_t wait = add_call(engine, WAIT, "1s");
        _cleanup_(victim_done) Victim victim = {};

        run(engine, &victim, "try:10 x32:100");
        assert_int_equal(counters(engine, wait).starts, 10);
}

/* Another call has that number there, and the same call another number. */
static void test_calls_of_32_bits(void **state) {
        Engine *engine = *state;
        uint32_t other = add_call(engine, "fremovexattr", "1s"),
                 same = add_call(engine, "getuid", "1s");
        _cleanup_(victim_done) Victim victim = {};

        run(engine, &victim, "compat:100 try:3");
        if (WIFSIGNALED(victim.status)) {
                print_message("This kernel has no system calls of 32 bits.\n");
                return;
        }
        /* The program asks both ways. */
        assert_int_equal(counters(engine, same).in_budget, 200);
        assert_int_equal(counters(engine, other).starts, 0);
}

/* It has begun before anybody measured it: its end is nobody's. */
static void test_a_call_that_is_underway(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index;

        start(&victim, "thread:600000000000 say:in join say:then try:5");
        victim_expect(&victim, "in");
        service_await_call(victim.pid, SYS_rt_sigtimedwait);
        index = add_call(engine, WAIT, "1s");
        victim_continue(&victim);
        victim_expect(&victim, "then");
        assert_int_equal(counters(engine, index).starts, 0);
        victim_continue(&victim);
        victim_finish(&victim);
        assert_int_equal(counters(engine, index).in_budget, 5);
        assert_int_equal(counters(engine, index).starts, 5);
        assert_int_equal(counters(engine, index).unmatched, 0);
}

static void test_removed_in_a_call(void **state) {
        Engine *engine = *state;
        uint32_t index = add_call(engine, WAIT, "1s");
        _cleanup_(victim_done) Victim victim = {};
        Statistics final;

        start(&victim, "thread:600000000000 say:in join say:then try:5");
        victim_expect(&victim, "in");
        service_await_call(victim.pid, SYS_rt_sigtimedwait);
        engine_remove(engine, index, &final);
        assert_int_equal(final.counters.starts, 1);
        assert_int_equal(final.counters.ended[TLOB_END_REMOVED], 1);
        index = add_call(engine, WAIT, "1s");
        victim_continue(&victim);
        victim_expect(&victim, "then");
        victim_continue(&victim);
        victim_finish(&victim);
        assert_int_equal(counters(engine, index).in_budget, 5);
        assert_int_equal(counters(engine, index).starts, 5);
        assert_int_equal(counters(engine, index).unmatched, 0);
}

/* Whatever ends the tasks that are in calls: nothing stays open. */
static void test_the_end_of_tasks(void **state) {
        static const char *const words[] = {
                "thread:600000000000 thread:600000000000 say:in exec",
                "thread:600000000000 thread:600000000000 say:in exit",
                "thread:600000000000 wait:600000000000",
        };
        Engine *engine = *state;
        uint32_t index = add_call(engine, WAIT, "10s");

        for (size_t i = 0; i < ELEMENTSOF(words); i++) {
                _cleanup_(victim_done) Victim victim = {};

                start(&victim, words[i]);
                while (starts_so_far(engine, index) < 2 * (i + 1))
                        rest(1);
                if (strstr(words[i], "say:in")) {
                        victim_expect(&victim, "in");
                        victim_continue(&victim);
                } else
                        assert_int_equal(kill(victim.pid, SIGKILL), 0);
                victim_finish(&victim);
        }
        assert_int_equal(counters(engine, index).starts, 6);
        assert_int_equal(engine_statistics(engine, index).open, 0);
        assert_int_equal(counters(engine, index).ended[TLOB_END_ABANDONED], 0);
}

/* The call is the parent's; a child has not begun one. */
static void test_forks(void **state) {
        Engine *engine = *state;
        uint32_t fork = add_call(engine, "fork", "1s"), vfork = add_call(engine, "vfork", "20ms");
        _cleanup_(victim_done) Victim victim = {};

        run(engine, &victim, "fork:20 vfork:60000000");
        assert_int_equal(counters(engine, fork).starts, 20);
        assert_int_equal(counters(engine, fork).in_budget, 20);
        assert_int_equal(counters(engine, fork).unmatched, 0);
        assert_int_equal(counters(engine, vfork).starts, 1);
        assert_length(completion_in(engine, vfork, &victim.windows[0]), &victim.windows[0],
                      60 * MSEC);
}

/* What is interrupted has ended; the handler makes a call of its own. */
static void test_a_handler(void **state) {
        Engine *engine = *state;
        uint32_t index = add_call(engine, WAIT, "10s");
        _cleanup_(victim_done) Victim victim = {};

        start(&victim, "alarm:0 wait:600000000000");
        service_await_call(victim.pid, SYS_rt_sigtimedwait);
        assert_int_equal(kill(victim.pid, SIGALRM), 0);
        victim_finish(&victim);
        assert_int_equal(counters(engine, index).starts, 2);
        assert_int_equal(counters(engine, index).in_budget, 2);
}

/* The kernel goes on with another call than the one that a stop came upon. */
static void test_a_call_that_is_begun_again(void **state) {
        Engine *engine = *state;
        uint32_t nap = add_call(engine, "nanosleep", "10s"),
                 again = add_call(engine, "restart_syscall", "10s");
        _cleanup_(victim_done) Victim victim = {};
        int status;

        start(&victim, "alarm:0 nap:600000000000");
        service_await_call(victim.pid, SYS_nanosleep);
        assert_int_equal(kill(victim.pid, SIGSTOP), 0);
        assert_int_equal(waitpid(victim.pid, &status, WUNTRACED), victim.pid);
        assert_true(WIFSTOPPED(status));
        assert_int_equal(kill(victim.pid, SIGCONT), 0);
        service_await_call(victim.pid, SYS_restart_syscall);
        assert_int_equal(kill(victim.pid, SIGALRM), 0);
        victim_finish(&victim);
        assert_int_equal(counters(engine, nap).starts, 1);
        assert_int_equal(counters(engine, nap).in_budget, 1);
        assert_int_equal(counters(engine, again).starts, 1);
        assert_int_equal(counters(engine, again).in_budget, 1);
}

static void test_calls_that_are_denied(void **state) {
        Engine *engine = *state;
        uint32_t index = add_call(engine, WAIT, "1s");
        _cleanup_(victim_done) Victim victim = {};
        char words[64];

        (void) snprintf(words, sizeof(words), "try:2 deny:%i try:100", SYS_rt_sigtimedwait);
        run(engine, &victim, words);
        assert_int_equal(counters(engine, index).starts, 2);
        assert_int_equal(counters(engine, index).in_budget, 2);
        assert_int_equal(counters(engine, index).unmatched, 0);
}

/* To the next stop of a system call. */
static void trace_on(pid_t pid) {
        int status;

        assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSTOPPED(status));
}

static long traced_number(pid_t pid) {
        struct user_regs_struct regs;

        assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &regs), 0);
        return (long) regs.orig_rax;
}

static void set_traced_number(pid_t pid, long number) {
        struct user_regs_struct regs;

        assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &regs), 0);
        regs.orig_rax = (unsigned long) number;
        assert_int_equal(ptrace(PTRACE_SETREGS, pid, NULL, &regs), 0);
}

/* What a tracer makes of a call before it begins is what counts, and its stops are in no window. */
static void test_a_tracer(void **state) {
        Engine *engine = *state;
        uint32_t wait = add_call(engine, WAIT, "10s"), other = add_call(engine, "getppid", "10s");
        _cleanup_(victim_done) Victim victim = {};
        unsigned n = 0;

        start(&victim, "say:go try:3");
        victim_expect(&victim, "go");
        assert_int_equal(ptrace(PTRACE_SEIZE, victim.pid, NULL, NULL), 0);
        assert_int_equal(ptrace(PTRACE_INTERRUPT, victim.pid, NULL, NULL), 0);
        assert_int_equal(waitpid(victim.pid, NULL, 0), victim.pid);
        victim_continue(&victim);
        while (n < 3) {
                trace_on(victim.pid);
                if (traced_number(victim.pid) != SYS_rt_sigtimedwait)
                        continue;
                /* The second becomes another one, the third none. */
                if (n++ > 0)
                        set_traced_number(victim.pid, n == 2 ? SYS_getppid : -1);
                rest(100);
                trace_on(victim.pid);
        }
        assert_int_equal(ptrace(PTRACE_DETACH, victim.pid, NULL, NULL), 0);
        victim_finish(&victim);
        assert_int_equal(counters(engine, wait).starts, 1);
        assert_int_equal(counters(engine, wait).in_budget, 1);
        assert_int_equal(counters(engine, other).starts, 1);
        assert_int_equal(counters(engine, other).in_budget, 1);
        assert_true(engine_statistics(engine, wait).max_ns < 100 * MSEC);
}

/* Windows of a function and of a call in it, and of two bindings. */
static void test_windows_overlap(void **state) {
        Engine *engine = *state;
        uint32_t call = add_call(engine, WAIT, "1ms"), same = add_call(engine, WAIT, "2ms"),
                 function;
        _cleanup_(victim_done) Victim victim = {};
        const Report *inner, *outer;

        function = service_add(engine, KEYS("Executable", caller_path(), "Function",
                                            "caller_within", "BudgetSec", "1ms"));
        run(engine, &victim, "within:9000000 try:3");
        assert_int_equal(counters(engine, function).starts, 1);
        assert_int_equal(counters(engine, call).starts, 4);
        assert_int_equal(counters(engine, same).starts, 4);
        inner = completion_in(engine, call, &victim.windows[0]);
        (void) completion_in(engine, same, &victim.windows[0]);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, function), 1);
        outer = engine_report(engine, REPORT_COMPLETION, function, 0);
        assert_true(outer->elapsed_ns > inner->elapsed_ns);
        assert_true(outer->spent_ns[TLOB_SLEEPING] >= inner->spent_ns[TLOB_SLEEPING]);
}

#define THREADS 8
#define TRIES   20000

static bool lies_in_a_call(const Report *report, const Victim *victim) {
        for (size_t i = 0; i < victim->n_windows; i++) {
                const Window *call = &victim->windows[i];

                if (report->tid == call->tid && report->time_ns <= call->end_ns &&
                    report->time_ns - report->elapsed_ns >= call->start_ns)
                        return true;
        }
        return false;
}

/*
 * More threads than CPUs, which are then busy for longer than their budget: no window may be open
 * that long, whatever was missed. A call can be that long itself, where a hypervisor or an emulator
 * lets a CPU stand still in the middle of it: then its caller has seen so too.
 */
static void test_many_threads(void **state) {
        Engine *engine = *state;
        uint32_t index = service_add(engine, KEYS("Syscall", WAIT, "RunningBudgetSec", "20ms"));
        _cleanup_(victim_done) Victim victim = {};
        const uint64_t n = UINT64_C(4) * THREADS * TRIES;
        char words[32];
        Counters c;

        (void) snprintf(words, sizeof(words), "storm:%i:%i", THREADS, TRIES);
        run(engine, &victim, words);
        c = counters(engine, index);
        print_message("%llu starts, %llu in budget, %llu abandoned, %llu violations\n",
                      (unsigned long long) c.starts, (unsigned long long) c.in_budget,
                      (unsigned long long) c.ended[TLOB_END_ABANDONED],
                      (unsigned long long) c.violations);
        assert_int_equal(c.nested + c.unmatched, 0);
        assert_int_equal(c.starts, n);
        assert_int_equal(c.in_budget + c.violated, n);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, index), c.violated);
        for (size_t i = 0; i < c.violated; i++)
                assert_true(lies_in_a_call(engine_report(engine, REPORT_COMPLETION, index, i),
                                           &victim));
}

/* What one call takes that nobody measures: the quickest of some rounds. */
static uint64_t time_call(void) {
        uint64_t best = UINT64_MAX;

        for (unsigned i = 0; i < 50; i++) {
                uint64_t begin = now_ns(), took;

                for (unsigned j = 0; j < 200; j++)
                        (void) syscall(SYS_getppid);
                took = (now_ns() - begin) / 200;
                best = took < best ? took : best;
        }
        return best;
}

/* What a call takes at best: before another one is measured, while it is, and after. */
typedef struct Quickest {
        uint64_t without;
        uint64_t with;
        uint64_t after;
} Quickest;

static void note_quicker(uint64_t *best, uint64_t took) {
        *best = took < *best ? took : *best;
}

static void time_round(Engine *engine, uint64_t price_ns, Quickest *best) {
        const BackendOps *ops = engine->backend->ops;
        uint64_t told, removal;
        uint32_t index;

        note_quicker(&best->without, time_call());
        index = add_call(engine, WAIT, "1s");
        told = ops->cost(engine->backend, index);
        note_quicker(&best->with, time_call());
        told = ops->cost(engine->backend, index) - told;
        /* 10000 calls of ours, and what others have called meanwhile. */
        assert_true(told >= price_ns * 10000);
        assert_true(ops->cost(engine->backend, BACKEND_NO_INDEX) >= told);
        removal = now_ns();
        engine_remove(engine, index, NULL);
        removal = now_ns() - removal;
        engine_await_detached();
        assert_int_equal(ops->cost(engine->backend, BACKEND_NO_INDEX), 0);
        note_quicker(&best->after, time_call());
        print_message("a call takes %llu ns, %llu while another one is measured, then %llu; the "
                      "binding is removed in %.1f ms\n",
                      (unsigned long long) best->without, (unsigned long long) best->with,
                      (unsigned long long) best->after, (double) removal / 1e6);
}

static bool can_be_told_apart(const Quickest *p) {
        return p->with > p->without && p->after < p->without + (p->with - p->without) / 2;
}

/* What all calls pay is told, and nobody pays any more when no call is measured. */
static void test_the_price(void **state) {
        Engine *engine = *state;
        const struct tlob_bpf *bpf = ((const BpfBackend *) engine->backend)->programs.bpf;
        Quickest best = { UINT64_MAX, UINT64_MAX, UINT64_MAX };
        unsigned n_rounds = machine_is_emulated() ? 1 : 50;

        engine_remove(engine, add_call(engine, WAIT, "1s"), NULL);
        engine_await_detached();
        /* Others who compute on the same core make calls dearer, and do so for a while only. */
        for (unsigned i = 0; i < n_rounds && !can_be_told_apart(&best); i++)
                time_round(engine, bpf->bss->call_price_ns, &best);
        if (machine_is_emulated())
                return;
        assert_true(can_be_told_apart(&best));
        /*
         * The price is a difference of about 100 ns that was measured for a few microseconds, as is
         * this one: while others compute on the same core, either may be half of what the other one
         * is, or less.
         */
        assert_true(bpf->bss->call_price_ns > (best.with - best.without) / 4);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, service_setup, service_teardown)

ENGINE_TESTS(calls) {
        const struct CMUnitTest tests[] = {
                TEST(test_calls_are_counted_and_are_as_long_as_they_are),
                TEST(test_a_static_program_that_is_stripped),
                TEST(test_a_budget_runs_out_in_a_call),
                TEST(test_a_budget_runs_out_in_a_call_of_who_has_run_for_long),
                TEST(test_calls_of_other_units),
                TEST(test_calls_of_x32),
                TEST(test_calls_of_32_bits),
                TEST(test_a_call_that_is_underway),
                TEST(test_removed_in_a_call),
                TEST(test_the_end_of_tasks),
                TEST(test_forks),
                TEST(test_a_handler),
                TEST(test_a_call_that_is_begun_again),
                TEST(test_calls_that_are_denied),
                TEST(test_a_tracer),
                TEST(test_windows_overlap),
                TEST(test_many_threads),
                TEST(test_the_price),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
