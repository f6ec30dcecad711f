/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Whatever becomes of a task in a window, measuring it must not keep the machine busy. The
 * instrument is the kernel's own count of timer interrupts: a timer that arms itself for the past
 * shows there, some hundred thousand times a second.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "engine.h"
#include "test.h"

/* How long after its start a window's deadline comes: no slow machine lets a task live as long. */
#define BUDGET    "2s"
#define BUDGET_NS (2 * NSEC_PER_SEC)
#define WATCH_NS  (200 * NSEC_PER_MSEC)

/* Two CPUs that tick 1000 times a second, and others' timers, come to a tenth of it. */
#define TIMERS_MAX 4000

/* The sum of all numbers in the line. */
static uint64_t sum_line(const char *line) {
        uint64_t sum = 0;
        char *end;

        for (const char *p = line;; p = end) {
                uint64_t n = strtoull(p, &end, 10);

                if (end == p)
                        return sum;
                sum += n;
        }
}

static uint64_t count_timers(void) {
        _cleanup_fclose_ FILE *f = fopen("/proc/softirqs", "re");
        char line[4096];

        assert_non_null(f);
        while (fgets(line, sizeof(line), f)) {
                char *name = strstr(line, "HRTIMER:");

                if (name)
                        return sum_line(name + strlen("HRTIMER:"));
        }
        fail_msg("/proc/softirqs has no line HRTIMER.");
        return 0;
}

static void pass(uint64_t ns) {
        const struct timespec ts = {
                .tv_sec = (time_t) (ns / NSEC_PER_SEC),
                .tv_nsec = (long) (ns % NSEC_PER_SEC),
        };

        assert_int_equal(nanosleep(&ts, NULL), 0);
}

/* Past the deadline of what the victim left behind, nothing goes on. */
static void check_silence(Engine *engine, const char *words) {
        _cleanup_(victim_done) Victim victim = {};
        uint64_t before;

        engine_run(engine, &victim, words);
        pass(BUDGET_NS);
        before = count_timers();
        pass(WATCH_NS);
        assert_in_range(count_timers() - before, 0, TIMERS_MAX);
        engine_collect(engine);
}

static void check_end(void **state, const char *words, enum tlob_end end) {
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", BUDGET), NULL);
        Statistics s;

        check_silence(engine, words);
        s = engine_statistics(engine, a);
        assert_int_not_equal(s.counters.starts, 0);
        assert_int_equal(s.counters.ended[end], s.counters.starts);
        assert_int_equal(s.counters.violations, 0);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, a), 0);
}

static void test_a_killed_task(void **state) {
        check_end(state, "a( sleep:1000000 kill )", TLOB_END_EXIT);
}

static void test_a_task_that_exits(void **state) {
        check_end(state, "a( sleep:1000000 exit )", TLOB_END_EXIT);
}

static void test_a_task_that_becomes_another_program(void **state) {
        check_end(state, "a( sleep:1000000 exec )", TLOB_END_EXEC);
}

static void test_threads_of_a_killed_process(void **state) {
        check_end(state, "threads:8 ( a( sleep:5000000 kill ) )", TLOB_END_EXIT);
}

/* A budget of a state: its deadline is one only as long as the task is in that state. */
static void test_a_budget_of_running(void **state) {
        Engine *engine = *state;

        (void) engine_add(engine,
                          KEYS("Executable", "%v", "Function", "victim_a", "BudgetSec", "infinity",
                               "RunningBudgetSec", BUDGET),
                          NULL);
        check_silence(engine, "a( spin:5000000 kill )");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_killed_task, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_task_that_exits, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_task_that_becomes_another_program,
                                                engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_threads_of_a_killed_process, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_a_budget_of_running, engine_setup,
                                                engine_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
