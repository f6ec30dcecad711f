/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * More threads than there is room for, which are measured once each and then sleep for ever: they
 * must not be in the way of the others, and of those that have no room it must be said.
 */

#include <string.h>
#include <time.h>

#include "engine.h"
#include "test.h"

#define VICTIMS 40
#define THREADS 16 /* of each; "threads:16" below */

static void start_all(Victim victims[static VICTIMS], const char *words) {
        for (size_t i = 0; i < VICTIMS; i++)
                victim_start(&victims[i], words);
}

static void stop_all(Victim victims[static VICTIMS]) {
        for (size_t i = 0; i < VICTIMS; i++)
                victim_done(&victims[i]);
}

/* The books balance only when nobody writes in them any more. */
static Statistics wait_for_starts(Engine *engine, uint32_t index, uint64_t n) {
        static const struct timespec pause = { .tv_nsec = 100000000 };
        const BackendOps *ops = engine->backend->ops;
        Statistics s = {};

        for (size_t i = 0; s.counters.starts < n && i < 1200; i++) {
                (void) nanosleep(&pause, NULL);
                assert_int_equal(ops->statistics(engine->backend, index, &s), 0);
        }
        assert_int_equal(s.counters.starts, n);
        (void) nanosleep(&pause, NULL);
        return engine_statistics(engine, index);
}

/* Of what the back end says about itself. */
static const char *find_limitation(const Engine *engine, const char *words) {
        const char *const *sentence = engine->backend->ops->limitations(engine->backend);

        for (; *sentence; sentence++)
                if (strstr(*sentence, words))
                        return *sentence;
        return NULL;
}

static void test_idle_threads_leave_room(void **state) {
        Victim victims[VICTIMS] = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1h"), NULL);
        Statistics s;

        start_all(victims, "threads:16 ( a( ) sleep:1000000000000 )");
        s = wait_for_starts(engine, a, VICTIMS * THREADS);
        stop_all(victims);

        assert_int_equal(s.counters.over_limit, 0);
        assert_null(find_limitation(engine, "TasksMax="));
}

static void test_too_many_windows(void **state) {
        Victim victims[VICTIMS] = {};
        BackendNotice notice = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1h"), NULL);
        Statistics s;

        start_all(victims, "threads:16 ( a( sleep:1000000000000 ) )");
        s = wait_for_starts(engine, a, VICTIMS * THREADS);
        assert_int_equal(s.counters.over_limit, VICTIMS * THREADS - ENGINE_TASKS_MAX);
        assert_non_null(find_limitation(engine, "TasksMax="));

        engine_collect(engine);
        assert_int_equal(engine->backend->ops->next_notice(engine->backend, &notice), 1);
        assert_non_null(strstr(notice.text, "TasksMax="));
        free(notice.text);
        assert_int_equal(engine->backend->ops->next_notice(engine->backend, &notice), 0);
        stop_all(victims);
}

/* Kernels have memory for a few hundred timers at once. */
static void test_each_window_is_found_while_it_is_open(void **state) {
        static const struct timespec pause = { .tv_nsec = 100000000 };
        const size_t n = ENGINE_TASKS_MAX - THREADS;
        Victim victims[VICTIMS] = {};
        Engine *engine = *state;
        uint32_t a = engine_add(engine, FUNCTION("a", "1s"), NULL);

        for (size_t i = 0; i < n / THREADS; i++)
                victim_start(&victims[i], "threads:16 ( a( sleep:1000000000000 ) )");
        (void) wait_for_starts(engine, a, n);
        for (size_t i = 0; engine_count(engine, REPORT_VIOLATION, a) < n && i < 100; i++) {
                (void) nanosleep(&pause, NULL);
                engine_collect(engine);
        }
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, a), n);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, a), 0);
        stop_all(victims);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_idle_threads_leave_room, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_too_many_windows, engine_setup,
                                                engine_teardown),
                cmocka_unit_test_setup_teardown(test_each_window_is_found_while_it_is_open,
                                                engine_setup, engine_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
