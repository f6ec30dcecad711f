/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What probes are said to take, against the CPU time that the kernel has charged the victim for;
 * and what timers are, against the clock, on a CPU that has hardly anything else to do.
 */

#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "engine.h"
#include "service.h"
#include "test.h"

#define CALLS 10000

static uint64_t ns_of(const struct timeval *tv) {
        return ((uint64_t) tv->tv_sec * 1000000 + (uint64_t) tv->tv_usec) * 1000;
}

/* Of the processes that have ended. */
static uint64_t cpu_ns(void) {
        struct rusage usage;

        assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
        return ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime);
}

static uint64_t run_storm(Engine *engine) {
        _cleanup_(victim_done) Victim victim = {};
        uint64_t before = cpu_ns();

        engine_run(engine, &victim, "storm:10000");
        return cpu_ns() - before;
}

/* Others on the machine make some of them longer, and none shorter. */
static uint64_t run_storms(Engine *engine, unsigned n) {
        uint64_t shortest = run_storm(engine), ns;

        for (unsigned i = 1; i < n; i++) {
                ns = run_storm(engine);
                shortest = ns < shortest ? ns : shortest;
        }
        return shortest;
}

static void test_cost(void **state) {
        Engine *engine = *state;
        uint64_t without, with, again, told, factor;
        Statistics s, final;
        uint32_t storm;

        without = run_storms(engine, 3);
        (void) engine->backend->ops->take_alarm(engine->backend);
        storm = engine_add(engine, FUNCTION("storm", "1min"), NULL);
        with = run_storm(engine);
        told = engine->backend->ops->cost(engine->backend, storm);
        s = engine_statistics(engine, storm);
        assert_int_equal(engine->backend->ops->cost(engine->backend, BACKEND_NO_INDEX), told);
        again = run_storms(engine, 3);
        with = again < with ? again : with;
        print_message("%i calls took %.1f ms more, and are said to have taken %.1f ms\n", CALLS,
                      (double) (with - without) / 1e6, (double) told / 1e6);
        assert_int_equal(s.counters.starts, CALLS);
        assert_int_equal(s.cost_ns, told);
        /* An emulator translates the victim's code anew, each time that a CPU of it stood still. */
        factor = machine_is_emulated() ? 20 : 3;
        assert_true(told > (with - without) / factor);
        assert_true(told < (with - without) * factor);
        assert_true(engine->backend->ops->take_alarm(engine->backend));
        assert_false(engine->backend->ops->take_alarm(engine->backend));

        assert_ok(engine->backend->ops->reset_statistics(engine->backend, storm));
        s = engine_statistics(engine, storm);
        assert_int_equal(s.cost_ns, 0);
        (void) run_storm(engine);
        engine_remove(engine, storm, &final);
        assert_true(final.cost_ns > told / 2 && final.cost_ns < told * 2);
}

/* What others at the place have cost before does not count for a binding, but for its place. */
static void test_two_at_one_place(void **state) {
        uint32_t first, second;
        Engine *engine = *state;

        first = engine_add(engine, FUNCTION("storm", "1min"), NULL);
        (void) run_storm(engine);
        second = engine_add(engine, FUNCTION("storm", "2min"), NULL);
        assert_int_equal(engine_statistics(engine, second).cost_ns, 0);
        assert_true(engine_statistics(engine, first).cost_ns > 0);
        (void) run_storm(engine);
        assert_int_equal(engine_statistics(engine, second).cost_ns * 2,
                         engine_statistics(engine, first).cost_ns);
}

static void test_seldom(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;

        (void) engine_add(engine, FUNCTION("a", "1min"), NULL);
        (void) engine->backend->ops->take_alarm(engine->backend);
        engine_run(engine, &victim, "repeat:100 ( a( sleep:100000 ) )");
        assert_false(engine->backend->ops->take_alarm(engine->backend));
}

#ifdef __x86_64__

#define ROUNDS 5000

static int pass_on(int from, int to) {
        char byte = 0;

        for (unsigned i = 0; i < ROUNDS; i++)
                if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1)
                        return EXIT_FAILURE;
        return EXIT_SUCCESS;
}

/* Others hardly get it meanwhile. */
static pid_t start_on_first_cpu(int from, int to) {
        cpu_set_t first;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid > 0)
                return pid;
        CPU_ZERO(&first);
        CPU_SET(0, &first);
        if (sched_setaffinity(0, sizeof(first), &first) < 0 ||
            setpriority(PRIO_PROCESS, 0, -20) < 0)
                _exit(EXIT_FAILURE);
        _exit(pass_on(from, to));
}

static void wait_for(pid_t pid) {
        int status;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

/* Two processes that pass a byte to and fro: each of them sleeps in each read(). */
static uint64_t play(void) {
        int there[2], back[2];
        uint64_t begin;
        pid_t first, second;

        assert_int_equal(pipe(there), 0);
        assert_int_equal(pipe(back), 0);
        first = start_on_first_cpu(there[0], back[1]);
        second = start_on_first_cpu(back[0], there[1]);
        service_move(first, SERVICE_GROUP);
        service_move(second, SERVICE_GROUP);
        begin = now_ns();
        assert_int_equal(write(there[1], "", 1), 1);
        wait_for(first);
        wait_for(second);
        for (size_t i = 0; i < 2; i++) {
                (void) close(there[i]);
                (void) close(back[i]);
        }
        return now_ns() - begin;
}

/* The quickest of some, and what it is said to have cost. */
typedef struct Play {
        uint64_t took_ns;
        uint64_t told_ns;
} Play;

static void play_measured(Engine *engine, const char *budget, Play *quickest) {
        uint32_t reads = service_add(engine, KEYS("Syscall", "read", "BudgetSec", budget));
        uint64_t took_ns = play();
        Statistics final;

        engine_remove(engine, reads, &final);
        if (took_ns < quickest->took_ns)
                *quickest = (Play) { took_ns, final.cost_ns };
}

/* What is more past the budget: is it about as much as it is said to be? */
static bool more_is_told(const Play *within, const Play *passed) {
        uint64_t more, told, factor = machine_is_emulated() ? 20 : 3;

        if (passed->took_ns <= within->took_ns || passed->told_ns <= within->told_ns)
                return false;
        more = passed->took_ns - within->took_ns;
        told = passed->told_ns - within->told_ns;
        return told > more / factor && told < more * factor;
}

static void test_timers(void **state) {
        const ReportLimit limit = { .interval_ns = UINT64_C(10000000000),
                                    .n = 20,
                                    .n_overall = 20 };
        Play within = { .took_ns = UINT64_MAX }, passed = { .took_ns = UINT64_MAX };
        Engine *engine = *state;
        bool alarmed = false;

        engine->backend->ops->set_report_limit(engine->backend, &limit);
        /* Others on the machine make some of them longer, and none shorter. */
        for (unsigned i = 0; i < 3 || (i < 20 && !more_is_told(&within, &passed)); i++) {
                play_measured(engine, "1min", &within);
                (void) engine->backend->ops->take_alarm(engine->backend);
                play_measured(engine, "1us", &passed);
                alarmed |= engine->backend->ops->take_alarm(engine->backend);
        }
        engine->backend->ops->set_report_limit(engine->backend, &(ReportLimit) {});
        print_message("%i reads took %.1f ms, and past their budget %.1f ms; said to have cost "
                      "%.1f and %.1f\n",
                      2 * ROUNDS, (double) within.took_ns / 1e6, (double) passed.took_ns / 1e6,
                      (double) within.told_ns / 1e6, (double) passed.told_ns / 1e6);
        assert_true(more_is_told(&within, &passed));
        assert_true(alarmed);
}

#endif

#define TEST(f) cmocka_unit_test_setup_teardown(f, engine_setup, engine_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_cost),
                TEST(test_two_at_one_place),
                TEST(test_seldom),
#ifdef __x86_64__
                cmocka_unit_test_setup_teardown(test_timers, service_setup, service_teardown),
#endif
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
