/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What probes are said to take, against the CPU time that the kernel has charged the victim for.
 */

#include <sys/resource.h>

#include "engine.h"
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

static void test_cost(void **state) {
        Engine *engine = *state;
        uint64_t without, with, told, factor;
        Statistics s, final;
        uint32_t storm;

        without = run_storm(engine);
        (void) engine->backend->ops->take_alarm(engine->backend);
        storm = engine_add(engine, FUNCTION("storm", "1min"), NULL);
        with = run_storm(engine);
        told = engine->backend->ops->cost(engine->backend, storm);
        s = engine_statistics(engine, storm);
        print_message("%i calls took %.1f ms more, and are said to have taken %.1f ms\n", CALLS,
                      (double) (with - without) / 1e6, (double) told / 1e6);
        assert_int_equal(s.counters.starts, CALLS);
        assert_int_equal(s.cost_ns, told);
        assert_int_equal(engine->backend->ops->cost(engine->backend, BACKEND_NO_INDEX), told);
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, engine_setup, engine_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_cost),
                TEST(test_two_at_one_place),
                TEST(test_seldom),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
