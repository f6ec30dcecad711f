/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Start=event:…, Stop=event:…, with the events of system calls of a program that counts them and
 * reads the clock around them, with those of signals, which are sent by tasks and by interrupts,
 * and with a probe in a program that somebody else has defined as an event.
 */

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/trace-event.h"
#include "binding/resolve.h"
#include "bpf/backend.h"
#include "bpf/hits.h"
#include "bpf/skeleton.h"
#include "engine.h"
#include "service.h"
#include "test.h"
#include "tracing.h"

#define MSEC UINT64_C(1000000)

#define ENTER "event:syscalls:sys_enter_rt_sigtimedwait"
#define EXIT  "event:syscalls:sys_exit_rt_sigtimedwait"

static void rest(unsigned ms) {
        const struct timespec ts = { .tv_nsec = (long) ms * 1000000L };

        (void) nanosleep(&ts, NULL);
}

static uint32_t add(Engine *engine, const char *from, const char *to, const char *budget) {
        return service_add(engine, KEYS("Start", from, "Stop", to, "BudgetSec", budget));
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

/* System calls can be measured there only. */
#ifdef __x86_64__

static void test_windows_are_counted_and_are_as_long_as_they_are(void **state) {
        static const uint64_t lengths[] = { 3, 5, 9, 2 };
        Engine *engine = *state;
        uint32_t index = add(engine, ENTER, EXIT, "1ms");
        uint32_t call =
                service_add(engine, KEYS("Syscall", "rt_sigtimedwait", "BudgetSec", "infinity"));
        _cleanup_(victim_done) Victim victim = {};
        Counters c;

        run(engine, &victim,
            "try:1000 wait:3000000 wait:5000000 try:1000 wait:9000000 wait:2000000");
        c = counters(engine, index);
        assert_int_equal(c.starts, 2004);
        assert_int_equal(c.in_budget + c.violated, 2004);
        assert_int_equal(c.nested + c.unmatched, 0);
        assert_true(c.violated >= 4);
        assert_int_equal(counters(engine, call).starts, 2004);
        for (size_t i = 0; i < ELEMENTSOF(lengths); i++) {
                const Window *record = &victim.windows[i];
                bool found = false;

                for (size_t j = 0; j < engine_count(engine, REPORT_COMPLETION, index); j++) {
                        const Report *report = engine_report(engine, REPORT_COMPLETION, index, j);

                        if (report->time_ns < record->start_ns || report->time_ns > record->end_ns)
                                continue;
                        assert_report_is_sound(report);
                        assert_int_equal(report->tid, record->tid);
                        assert_true(report->elapsed_ns >= lengths[i] * MSEC);
                        assert_true(report->elapsed_ns <= record->end_ns - record->start_ns);
                        found = true;
                }
                assert_true(found);
        }
}

static const Report *await_violation(Engine *engine, uint32_t index) {
        while (engine_count(engine, REPORT_VIOLATION, index) == 0) {
                rest(5);
                engine_collect(engine);
        }
        return engine_report(engine, REPORT_VIOLATION, index, 0);
}

static void test_a_budget_runs_out_in_sleep(void **state) {
        Engine *engine = *state;
        uint32_t index = service_add(
                engine, KEYS("Start", ENTER, "Stop", EXIT, "SleepingBudgetSec", "20ms"));
        _cleanup_(victim_done) Victim victim = {};
        const Report *completion;
        uint64_t open_ns;

        start(&victim, "thread:600000000000 say:in join");
        victim_expect(&victim, "in");
        assert_int_equal(await_violation(engine, index)->state, TLOB_SLEEPING);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, index), 0);
        assert_int_equal(engine_statistics(engine, index).open, 1);
        open_ns = now_ns();
        victim_continue(&victim);
        victim_finish(&victim);
        engine_collect(engine);
        completion = engine_completion(engine, await_violation(engine, index));
        assert_true(completion->time_ns - completion->elapsed_ns < open_ns);
        assert_true(completion->time_ns >= open_ns);
}

/* From the end of one call to the begin of the next, while it uses 50 ms of a CPU. */
static void test_a_budget_runs_out_on_a_cpu(void **state) {
        Engine *engine = *state;
        uint32_t index =
                service_add(engine, KEYS("Start", EXIT, "Stop", ENTER, "RunningBudgetSec", "20ms"));
        _cleanup_(victim_done) Victim victim = {};
        const Report *first, *completion;

        run(engine, &victim, "storm:1:1");
        assert_int_equal(counters(engine, index).starts, 4);
        first = engine_report(engine, REPORT_VIOLATION, index, 0);
        /* It never sleeps; but another task can get the CPU at that very moment. */
        assert_int_not_equal(first->state, TLOB_SLEEPING);
        assert_true(first->spent_ns[TLOB_RUNNING] >= 20 * MSEC);
        completion = engine_completion(engine, first);
        assert_true(completion->spent_ns[TLOB_RUNNING] >= 50 * MSEC);
        /* While it was open. */
        assert_true(first->spent_ns[TLOB_RUNNING] < completion->spent_ns[TLOB_RUNNING] ||
                    machine_is_emulated());
}

static void test_events_of_other_units(void **state) {
        Engine *engine = *state;
        uint32_t index = add(engine, ENTER, EXIT, "1s"), everybody;
        _cleanup_(victim_done) Victim victim = {};

        service_start(&victim, caller_path(), OTHER_GROUP, "try:100");
        victim_finish(&victim);
        assert_int_equal(counters(engine, index).starts, 0);
        assert_true(counters(engine, index).outside >= 100);

        everybody = engine_add(engine, KEYS("Start", ENTER, "Stop", EXIT, "BudgetSec", "infinity"),
                               NULL);
        victim_done(&victim);
        service_start(&victim, caller_path(), OTHER_GROUP, "try:100");
        victim_finish(&victim);
        assert_int_equal(counters(engine, index).starts, 0);
        assert_true(counters(engine, everybody).starts >= 100);
}

/* All system calls of the machine that were made while any is measured. */
static uint64_t count_calls(const Engine *engine) {
        const BpfBackend *b = (const BpfBackend *) engine->backend;

        return hits_read(bpf_map__fd(b->programs.bpf->maps.call_hits), 0, b->n_cpus, 0);
}

/* What one of them is taken for. */
static uint64_t price_of_call(const Engine *engine) {
        return ((const BpfBackend *) engine->backend)->programs.bpf->bss->call_price_ns;
}

/* All system calls of the machine do, and each such binding is taken for all of them. */
static void test_what_others_pay_is_told(void **state) {
        Engine *engine = *state;
        const BackendOps *ops = engine->backend->ops;
        uint32_t index = add(engine, ENTER, EXIT, "1s");
        uint64_t before = ops->cost(engine->backend, index), all;

        for (unsigned i = 0; i < 10000; i++)
                (void) syscall(SYS_getppid);
        all = ops->cost(engine->backend, index) - before;
        engine_remove(engine, index, NULL);
        assert_int_equal(ops->cost(engine->backend, BACKEND_NO_INDEX), 0);
        assert_true(all >= 10000 * price_of_call(engine));
        /* Some 100 ns; in an emulator nothing is known to be that long. */
        assert_true(price_of_call(engine) > 10 || machine_is_emulated());
}

/* What others have paid does not become dearer with what comes later. */
static void test_the_past_keeps_its_price(void **state) {
        Engine *engine = *state;
        const BackendOps *ops = engine->backend->ops;
        uint32_t call = service_add(engine, KEYS("Syscall", "fremovexattr", "BudgetSec", "1s"));
        uint64_t begin = ops->cost(engine->backend, call), before, after, n;

        if (machine_is_emulated())
                return;
        for (unsigned i = 0; i < 2000000; i++)
                (void) syscall(SYS_getppid);
        n = count_calls(engine);
        before = ops->cost(engine->backend, call) - begin;
        (void) add(engine, ENTER, EXIT, "1s");
        after = ops->cost(engine->backend, call) - begin;
        n = count_calls(engine) - n;
        assert_in_range(after, before, before + n * price_of_call(engine));
}

static void test_many_threads(void **state) {
        Engine *engine = *state;
        uint32_t index = add(engine, ENTER, EXIT, "1min");
        _cleanup_(victim_done) Victim victim = {};
        Counters c;

        start(&victim, "storm:8:2000 thread:600000000000 say:in exit");
        victim_expect(&victim, "in");
        service_await_call(victim.pid, SYS_rt_sigtimedwait);
        victim_continue(&victim);
        victim_finish(&victim);
        engine_collect(engine);
        c = counters(engine, index);
        assert_int_equal(c.starts, 8 * 2000 * 4 + 1);
        /* The last one ends as the kernel does its call, before it ends its thread. */
        assert_int_equal(c.in_budget, c.starts);
        assert_int_equal(c.nested + c.unmatched, 0);
}

#endif

/*
 * Whoever waits for a process is told of its end, by a signal, while its last thread still runs:
 * the window that this one begins ends with the thread, a moment later.
 */
static void await_last_end(Engine *engine, uint32_t index) {
        Statistics s = { .open = 1 };

        for (unsigned i = 0; s.open > 0; i++) {
                assert_int_not_equal(i, 1000);
                rest(i > 0);
                assert_ok(engine->backend->ops->statistics(engine->backend, index, &s));
        }
}

/* How often a thread of the service has come to the event where the windows begin. */
static uint64_t count_signals(Engine *engine, const char *words) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index;
        Counters c;

        index = add(engine, "event:signal:signal_generate", "event:signal:signal_deliver", "1min");
        run(engine, &victim, words);
        await_last_end(engine, index);
        c = counters(engine, index);
        engine_remove(engine, index, NULL);
        return c.starts + c.nested;
}

/*
 * On one CPU, so that the timer's interrupt comes upon a thread of the very service that runs
 * there: that thread has sent no signal. One that does so, to another one, has; and so has each
 * process that ends.
 */
static void test_interrupts_are_nobodys(void **state) {
        cpu_set_t all, one;

        assert_ok(sched_getaffinity(0, sizeof(all), &all));
        CPU_ZERO(&one);
        for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
                if (CPU_ISSET(cpu, &all))
                        CPU_SET(cpu, &one);
        assert_ok(sched_setaffinity(0, sizeof(one), &one));
        assert_int_equal(count_signals(*state, "try:1"), 1);
        assert_int_equal(count_signals(*state, "alarm:20000000 storm:1:1"), 1);
        assert_int_equal(count_signals(*state, "thread:60000000000 join"), 2);
        assert_ok(sched_setaffinity(0, sizeof(all), &all));
}

#ifdef __x86_64__

/* Threads of the kernel do. That can be told after a while, and is not said of others. */
static void test_a_stop_that_no_task_comes_to(void **state) {
        Engine *engine = *state;
        uint32_t wrong = add(engine, ENTER, "event:workqueue:workqueue_execute_start", "1min");
        uint32_t right = add(engine, ENTER, EXIT, "1min");
        const BackendOps *ops = engine->backend->ops;
        _cleanup_(victim_done) Victim victim = {};
        _cleanup_close_ int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        char *remark = NULL;

        run(engine, &victim, "try:1000");
        for (unsigned i = 0; !remark && i < 1000; i++) {
                /* One of them takes it to those who read. */
                (void) write(terminal, "\n", 1);
                rest(10);
                remark = ops->remark(engine->backend, wrong);
        }
        assert_non_null(remark);
        assert_non_null(strstr(remark, "write another Stop="));
        free(remark);
        assert_null(ops->remark(engine->backend, right));
        assert_int_equal(counters(engine, wrong).starts, 1);
        assert_int_equal(counters(engine, wrong).nested, 999);
        assert_int_equal(counters(engine, wrong).ended[TLOB_END_EXIT], 1);
}

#endif

#define EVENT_GROUP "tlob_test"

static int define_event(const char *file, const char *text) {
        char path[64];
        int fd, r = 0;

        (void) snprintf(path, sizeof(path), "/sys/kernel/tracing/%s", file);
        fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (write(fd, text, strlen(text)) < 0)
                r = -errno;
        (void) close(fd);
        return r;
}

static uint64_t find_function(const char *name) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_(elf_site_done) ElfSite site = {};

        assert_ok(elf_file_open(caller_path(), &elf, NULL));
        assert_ok(elf_file_resolve(elf, name, &site, NULL));
        return site.offset;
}

/* One that is there twice at most: a run that was killed has left it. */
static void define_probe(const char *kind, const char *name, uint64_t offset) {
        char text[512];

        (void) snprintf(text, sizeof(text), "-:" EVENT_GROUP "/%s", name);
        (void) define_event("uprobe_events", text);
        (void) snprintf(text, sizeof(text), "%s:" EVENT_GROUP "/%s %s:0x%llx", kind, name,
                        caller_path(), (unsigned long long) offset);
        assert_ok(define_event("uprobe_events", text));
}

static bool is_probe(const char *from, const char *to) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(binding_file_freep) BindingFile *file = NULL;

        assert_ok(binding_new("test", &binding));
        engine_set_keys(binding, KEYS("Start", from, "Stop", to, "BudgetSec", "1s"));
        assert_ok(binding_resolve(binding, &file, NULL));
        return binding_has_probe_events(binding);
}

static void test_probes_that_others_have_defined(void **state) {
        Engine *engine = *state;
        _cleanup_(victim_done) Victim victim = {};
        const Report *report;
        uint32_t index;

        define_probe("p", "begin", find_function("caller_within"));
        define_probe("r", "end", find_function("caller_within"));
        assert_true(is_probe("event:" EVENT_GROUP ":begin", "event:" EVENT_GROUP ":end"));
        assert_false(is_probe("event:signal:signal_generate", "event:signal:signal_deliver"));
        index = add(engine, "event:" EVENT_GROUP ":begin", "event:" EVENT_GROUP ":end", "1ms");
        run(engine, &victim, "try:5 within:9000000 within:4000000 try:5");
        assert_int_equal(counters(engine, index).starts, 2);
        for (size_t i = 0; i < 2; i++) {
                const Window *record = &victim.windows[i];

                report = engine_report(engine, REPORT_COMPLETION, index, i);
                assert_true(report->time_ns >= record->end_ns);
                assert_true(report->time_ns - report->elapsed_ns <= record->start_ns);
                assert_true(report->elapsed_ns >= record->end_ns - record->start_ns);
        }
        engine_remove(engine, index, NULL);
        engine_await_detached();
        assert_ok(define_event("uprobe_events", "-:" EVENT_GROUP "/begin"));
        assert_ok(define_event("uprobe_events", "-:" EVENT_GROUP "/end"));
}

static void assert_event(const char *event, TraceEventKind kind, uint32_t number) {
        _cleanup_free_ char *why = NULL;
        TraceEvent found;

        assert_ok(trace_event_find(event, &found, &why));
        assert_int_equal(found.kind, kind);
        if (trace_event_is_of_call(kind))
                assert_int_equal(found.id, number);
}

/* Some have another name than the call. */
static void test_events_of_calls_are_their_numbers(void **state) {
        assert_event("syscalls:sys_enter_fsync", TRACE_EVENT_CALL_BEGIN, SYS_fsync);
        assert_event("syscalls:sys_exit_fsync", TRACE_EVENT_CALL_END, SYS_fsync);
        assert_event("syscalls:sys_enter_newfstat", TRACE_EVENT_CALL_BEGIN, SYS_fstat);
        assert_event("syscalls:sys_exit_umount", TRACE_EVENT_CALL_END, SYS_umount2);
        assert_event("syscalls:sys_exit_sendfile64", TRACE_EVENT_CALL_END, SYS_sendfile);
        assert_event("raw_syscalls:sys_enter", TRACE_EVENT_TRACEPOINT, 0);
        assert_event("signal:signal_generate", TRACE_EVENT_TRACEPOINT, 0);
}

static void assert_refused(const char *from, const char *to, const char *words) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_free_ char *why = NULL;

        assert_ok(binding_new("test", &binding));
        engine_set_keys(binding, KEYS("Start", from, "Stop", to, "BudgetSec", "1s"));
        assert_true(binding_resolve(binding, &file, &why) < 0);
        assert_non_null(why);
        if (!strstr(why, words))
                fail_msg("'%s' is not in: %s", words, why);
}

static void test_events_that_cannot_be(void **state) {
        assert_refused("event:syscalls:sys_enter_rt_sigtimedwat", EXIT,
                       "near names: sys_enter_rt_sigtimedwait");
        assert_refused("event:systemcalls:sys_enter_fsync", EXIT, "has no group 'systemcalls'");
        assert_refused(ENTER, "event:syscalls:none_such_at_all", "is no event of this kernel");
        assert_refused(ENTER, "event:syscalls:sys_exit_exit_group", "is never hit");
        /* Not all kernels have those. */
        if (define_event("kprobe_events", "p:" EVENT_GROUP "/kernel do_nanosleep") < 0) {
                print_message("This kernel has no kprobes.\n");
                return;
        }
        assert_refused("event:" EVENT_GROUP ":kernel", EXIT, "is a probe in the kernel");
        assert_ok(define_event("kprobe_events", "-:" EVENT_GROUP "/kernel"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, service_setup, service_teardown)

ENGINE_TESTS(events) {
        const struct CMUnitTest tests[] = {
#ifdef __x86_64__
                TEST(test_windows_are_counted_and_are_as_long_as_they_are),
                TEST(test_a_budget_runs_out_in_sleep),
                TEST(test_a_budget_runs_out_on_a_cpu),
                TEST(test_events_of_other_units),
                TEST(test_what_others_pay_is_told),
                TEST(test_the_past_keeps_its_price),
                TEST(test_many_threads),
                TEST(test_a_stop_that_no_task_comes_to),
#endif
                TEST(test_interrupts_are_nobodys),
                TEST(test_probes_that_others_have_defined),
                TEST(test_events_of_calls_are_their_numbers),
                TEST(test_events_that_cannot_be),
        };

        return cmocka_run_group_tests(tests, tracing_need, NULL);
}
