/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Programs that break budgets faster than anybody can read of it, and the daemon that breaks its
 * own: the back end comes back to whoever called it, loses nothing without counting it, leaves
 * other bindings their reports, and the daemon out.
 */

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "binding/resolve.h"
#include "bpf/layout.h"
#include "engine.h"
#include "test.h"

#define FLOOD      FUNCTION("storm", "1us")
#define REPORT_NS  30000U     /* as long as the daemon takes for one, roughly */
#define TURN_NS    2000000U   /* of one dispatch() */
#define SILENCE_NS 250000000U /* on this side of it, nobody waits for long */
#define LIMIT      100
#define LIMIT_NS   UINT64_C(3600000000000)

typedef struct Reading {
        size_t n[2]; /* by ReportType */
} Reading;

static void on_report(const Report *report, void *userdata) {
        uint64_t until = now_ns() + REPORT_NS;
        Reading *reading = userdata;

        while (now_ns() < until)
                ;
        reading->n[report->type]++;
}

static void stop_victim(Victim *victim) {
        assert_int_equal(kill(victim->pid, SIGKILL), 0);
        victim_finish(victim);
}

/*
 * Two threads that never stop, and a reader that is slower than they are. When others have its CPU
 * meanwhile, it reads no more, and is silent for no longer by its own clock.
 */
static void test_reading_comes_back(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint64_t longest = 0, until;
        Reading reading = {};

        (void) engine_add(engine, FLOOD, NULL);
        victim_start(&victim, "threads:2 ( storm:1000000000 )");
        until = now_ns() + 2000000000;
        while (now_ns() < until) {
                uint64_t begin = clock_read_ns(CLOCK_THREAD_CPUTIME_ID), took;

                assert_in_range(
                        engine->backend->ops->dispatch(engine->backend, on_report, &reading), 0,
                        TURN_NS / REPORT_NS + 1);
                took = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
                longest = took > longest ? took : longest;
        }
        stop_victim(&victim);
        print_message("%zu violations read, the longest silence was %.1f ms\n",
                      reading.n[REPORT_VIOLATION], (double) longest / 1e6);
        assert_true(reading.n[REPORT_VIOLATION] > 100);
        assert_true(longest < SILENCE_NS || machine_is_emulated());
}

/* Removal has to read what is there, but not what comes meanwhile from others. */
static void test_flush_comes_back(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint64_t begin, lost = engine->backend->ops->lost(engine->backend);
        Reading reading = {};

        (void) engine_add(engine, FLOOD, NULL);
        victim_start(&victim, "threads:2 ( storm:1000000000 )");
        while (engine->backend->ops->lost(engine->backend) == lost)
                ;
        begin = now_ns();
        assert_true(engine->backend->ops->flush(engine->backend, on_report, &reading) > 0);
        /* The buffer holds some thousand records. */
        assert_true(now_ns() - begin < 5000000000U);
        stop_victim(&victim);
}

static void set_limit(Engine *engine, uint64_t interval_ns, uint64_t n) {
        const ReportLimit limit = { .interval_ns = interval_ns, .n = n };

        engine->backend->ops->set_report_limit(engine->backend, &limit);
}

/* Beyond the limit nothing is written, all is counted, and others have the buffer to themselves. */
static void test_limit_balances(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t storm = engine_add(engine, FLOOD, NULL);
        uint32_t a = engine_add(engine, FUNCTION("a", "1us"), NULL);
        Statistics s;

        set_limit(engine, LIMIT_NS, LIMIT);
        engine_run(engine, &victim, "storm:100000 repeat:50 ( a( spin:2000 storm:1000 ) )");
        s = engine_statistics(engine, storm);
        assert_int_equal(s.counters.starts, 150000);
        assert_int_equal(s.counters.violations, 150000);
        assert_int_equal(s.counters.violated, 150000);
        assert_int_equal(s.counters.lost, 0);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, storm), LIMIT);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, storm), LIMIT);
        assert_int_equal(s.counters.suppressed, 150000 - LIMIT);

        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.suppressed, 0);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, a), 50);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, a), 50);
        set_limit(engine, 0, 0);
}

/* What all have together is used up by one after the other; yet the first of each comes. */
static void test_limit_of_all(void **state) {
        const ReportLimit limit = { .interval_ns = LIMIT_NS, .n = LIMIT, .n_overall = 150 };
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t storm = engine_add(engine, FLOOD, NULL);
        uint32_t a = engine_add(engine, FUNCTION("a", "1us"), NULL);
        uint32_t b = engine_add(engine, FUNCTION("b", "1us"), NULL);

        engine->backend->ops->set_report_limit(engine->backend, &limit);
        engine_run(engine, &victim,
                   "storm:1000 repeat:80 ( a( spin:2000 ) ) repeat:80 ( b( spin:2000 ) )");
        set_limit(engine, 0, 0);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, storm), LIMIT);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, a), 150 - LIMIT);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, b), 1);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, b), 1);
        assert_int_equal(engine_statistics(engine, b).counters.suppressed, 79);
}

/* Without a limit, and nobody reads: one fills the buffer, and leaves others their share. */
static void test_shares_of_the_buffer(void **state) {
        Engine *engine = *state;
        uint32_t storm = engine_add(engine, FLOOD, NULL);
        uint32_t a = engine_add(engine, FUNCTION("a", "1us"), NULL);
        Statistics s;

        for (unsigned i = 0; i < 2; i++) {
                _cleanup_(victim_done) Victim victim = {};

                victim_start(&victim, "storm:20000 repeat:50 ( a( spin:2000 storm:100 ) )");
                victim_finish(&victim);
                engine_collect(engine);
        }
        s = engine_statistics(engine, storm);
        assert_int_equal(s.counters.violations, 50000);
        assert_true(s.counters.lost > 0);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, storm) +
                                 engine_count(engine, REPORT_COMPLETION, storm) + s.counters.lost,
                         100000);
        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.lost, 0);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, a), 100);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, a), 100);
}

/* Nor do the stacks of those that are lost take it: they sleep when they run over. */
static void test_shares_of_who_sleeps(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t b = engine_add(
                engine,
                KEYS("Executable", "%v", "Function", "victim_b", "SleepingBudgetSec", "1us"), NULL);
        uint32_t a = engine_add(engine, FUNCTION("a", "1us"), NULL);

        victim_start(&victim, "repeat:40 ( repeat:100 ( b( sleep:20000 ) ) a( spin:2000 ) )");
        victim_finish(&victim);
        engine_collect(engine);
        assert_true(engine_statistics(engine, b).counters.lost > 0);
        assert_int_equal(engine_statistics(engine, a).counters.lost, 0);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, a), 40);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, a), 40);
}

/*
 * What the limit lets through comes back with time: one each two milliseconds, so that the buffer
 * has room for all of them, however long a slow machine takes.
 */
static void test_limit_is_a_rate(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t storm = engine_add(engine, FLOOD, NULL);
        Statistics s;
        size_t n;

        set_limit(engine, 100000000, 50);
        engine_run(engine, &victim, "storm:20000 sleep:20000000 storm:50");
        s = engine_statistics(engine, storm);
        n = engine_count(engine, REPORT_VIOLATION, storm);
        assert_int_equal(n + s.counters.suppressed, 20050);
        assert_int_equal(s.counters.lost, 0);
        assert_true(n >= 60);
        assert_true(s.counters.suppressed > 5000);
        set_limit(engine, 0, 0);
}

/* An open window whose violation was not reported ends without a report when its binding goes. */
static void test_removal_of_what_was_not_reported(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1us"), NULL);
        Statistics s;

        set_limit(engine, LIMIT_NS, 1);
        victim_start(&victim, "a( spin:2000 ) a( sleep:2000000 say:inside )");
        victim_expect(&victim, "inside");
        /* The program that counts it may be on a CPU that stands still. */
        while (engine_statistics(engine, a).counters.suppressed == 0)
                ;
        engine_remove(engine, a, &s);
        victim_continue(&victim);
        victim_finish(&victim);
        set_limit(engine, 0, 0);
        assert_int_equal(s.counters.violations, 2);
        assert_int_equal(s.counters.suppressed, 1);
        assert_int_equal(s.counters.ended[TLOB_END_REMOVED], 1);
        assert_int_equal(engine->n_reports, 2);
}

/* The one that is too many is told what is too much. */
static void test_a_place_is_full(void **state) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *error = NULL;
        Engine *engine = *state;
        uint32_t index;

        for (unsigned i = 0; i < TLOB_SITE_BINDINGS_MAX + TLOB_SCOPE_BINDINGS_MAX; i++)
                (void) engine_add(engine, FUNCTION("a", "1min"), NULL);
        assert_ok(binding_new("last", &binding));
        engine_set_keys(binding, FUNCTION("a", "1min"));
        assert_ok(binding_resolve(binding, &file, &error));
        assert_int_equal(engine->backend->ops->add(engine->backend, binding, file, &index, &error),
                         -E2BIG);
        assert_non_null(strstr(error, "20 bindings without a unit at this place"));
}

__attribute__((noinline)) void flood_measured(void);

void flood_measured(void) {
        __asm__ volatile("nop");
}

/* In a process that is so far from this one. */
static void call_from(unsigned generation) {
        pid_t pid;
        int status;

        if (generation == 0) {
                flood_measured();
                return;
        }
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                call_from(generation - 1);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static Statistics measure_self(Backend *backend, unsigned generation) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_free_ char *path = realpath("/proc/self/exe", NULL), *error = NULL;
        Statistics s;
        uint32_t index;

        assert_non_null(path);
        assert_int_equal(binding_new("self", &binding), 0);
        engine_set_keys(binding, KEYS("Executable", path, "Function", "flood_measured", "BudgetSec",
                                      "1min"));
        if (binding_check(binding, &error) < 0 || binding_resolve(binding, &file, &error) < 0 ||
            backend->ops->add(backend, binding, file, &index, &error) < 0)
                fail_msg("%s", error);
        assert_int_equal(backend->ops->complete(backend), 0);
        for (int i = 0; i < 10; i++)
                call_from(generation);
        assert_int_equal(backend->ops->remove(backend, index, &s, NULL), 0);
        return s;
}

static void test_self_is_left_out(void **state) {
        static const BackendConfig config = {
                .bindings_max = 4,
                .tasks_max = 64,
                .ring_buffer_size = 1 << 16,
                .leave_out_self = true,
        };
        _cleanup_free_ char *reason = NULL;
        Engine *engine = *state;
        Backend *backend;

        /* Without that it is measured like everybody else. */
        assert_int_equal(measure_self(engine->backend, 0).counters.starts, 10);
        assert_int_equal(measure_self(engine->backend, 1).counters.starts, 10);

        if (backend_bpf_ops.new(&config, &backend, &reason) < 0)
                fail_msg("%s", reason);
        for (unsigned generation = 0; generation < 4; generation++) {
                Statistics s = measure_self(backend, generation);

                /*
                 * Ours, a process that we have started, and one that this has started; and so on.
                 */
                assert_int_equal(s.counters.starts, generation < 3 ? 0 : 10);
                assert_int_equal(s.counters.over_limit, 0);
                assert_int_equal(s.counters.unmatched, 0);
        }
        backend->ops->free(backend);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, engine_setup, engine_teardown)

ENGINE_TESTS(flood) {
        const struct CMUnitTest tests[] = {
                TEST(test_reading_comes_back),   TEST(test_flush_comes_back),
                TEST(test_limit_balances),       TEST(test_limit_is_a_rate),
                TEST(test_limit_of_all),         TEST(test_shares_of_the_buffer),
                TEST(test_shares_of_who_sleeps), TEST(test_removal_of_what_was_not_reported),
                TEST(test_a_place_is_full),      TEST(test_self_is_left_out),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
