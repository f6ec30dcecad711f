/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a hypervisor takes: the sum over the windows of a thread that keeps a CPU busy, against the
 * kernel's own account of that CPU in /proc/stat, which is kept elsewhere, at the tick. Where none
 * is told, none is found.
 */

#include <inttypes.h>
#include <sched.h>

#include "engine.h"
#include "test.h"

#define NS_PER_TICK 10000000 /* of /proc/stat: USER_HZ is 100 */
/* two of them on either side, and what is before and after the windows */
#define SLACK_NS 40000000

static uint64_t steal_of_first_cpu(void) {
        _cleanup_fclose_ FILE *f = fopen("/proc/stat", "re");
        uint64_t steal;
        char line[256];

        assert_non_null(f);
        while (fgets(line, sizeof(line), f))
                if (sscanf(line, "cpu0 %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &steal) == 1)
                        return steal * NS_PER_TICK;
        fail_msg("/proc/stat tells no steal.");
        return 0;
}

static void test_sum_is_that_of_the_kernel(void **state) {
        const struct sched_param priority = { .sched_priority = 1 };
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint64_t before, told, found = 0, running = 0;
        uint32_t a;

        a = engine_add(engine, FUNCTION("a", "1us"), NULL);
        victim_start(&victim, "pin:0 say:ready repeat:100 ( a( spin:20000000 ) ) say:done");
        victim_expect(&victim, "ready");
        /* Else what is taken from others there would not be its. */
        (void) sched_setscheduler(victim.pid, SCHED_FIFO, &priority);
        before = steal_of_first_cpu();
        victim_continue(&victim);
        victim_expect(&victim, "done");
        told = steal_of_first_cpu() - before;
        engine_collect(engine);

        for (size_t i = 0; i < engine_count(engine, REPORT_COMPLETION, a); i++) {
                const Report *report = engine_report(engine, REPORT_COMPLETION, a, i);

                assert_true(report->stolen_ns <= report->spent_ns[TLOB_RUNNING]);
                found += report->stolen_ns;
                running += report->spent_ns[TLOB_RUNNING];
        }
        print_message("of %" PRIu64 " ms running, %" PRIu64 " ms were stolen; told: %" PRIu64
                      " ms\n",
                      running / 1000000, found / 1000000, told / 1000000);
        assert_true(found <= told + SLACK_NS);
        /*
         * A thread of that priority gets nineteen parts in twenty, if all there are those of
         * ordinary tasks.
         */
        if (sched_getscheduler(victim.pid) == SCHED_FIFO)
                assert_true(found + SLACK_NS >= told - told / 5);
}

ENGINE_TESTS(steal) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_sum_is_that_of_the_kernel, engine_setup,
                                                engine_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
