/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The version of the monitor whose bindings have names, and whose events tell neither the binding
 * nor the time in each state: both are found out here, or the binding is refused.
 */

#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "kernel/tracing.h"
#include "test.h"
#include "tracefs.h"

#define MONITOR  "rv/monitors/tlob/monitor"
#define BUDGET   UINT64_C(5000000)
#define ADDED    UINT64_C(10000) /* to the budget, for the monitor */
#define LAST_CPU 1

static void pass(unsigned msec) {
        struct timespec ts = { .tv_nsec = msec * 1000000L };

        (void) nanosleep(&ts, NULL);
}

/* Over its budget: 1 ms running, 2 waiting, 4 sleeping, on different CPUs as a task moves. */
static void raise_window(int id) {
        raise_on_cpu(0);
        raise_change(id, "stopped", "start", "running");
        pass(1);
        raise_change(id, "running", "sleep", "sleeping");
        pass(4);
        raise_on_cpu(LAST_CPU);
        raise_change(id, "sleeping", "wakeup", "waiting");
        pass(2);
        raise_on_cpu(0);
        raise_change(id, "waiting", "switch_in", "running");
        raise_error_env(id, "running", "budget_exceeded");
        raise_on_cpu(-1);
}

static void test_driving(void **state) {
        uint64_t budget[TLOB_N_BUDGETS] = { 7000000, BUDGET_NONE, BUDGET_NONE, BUDGET_NONE,
                                            BUDGET_NONE };
        _cleanup_free_ char *text = NULL, *changed = NULL;
        uint32_t index;
        Tracefs t;

        tracefs_begin(&t, "named");
        index = (uint32_t) tracefs_add_marks(&t, "5ms");
        text = tracefs_read(MONITOR);
        /* Someone else has the first name. */
        assert_non_null(strstr(text, "\np:tlobd_1 /"));
        assert_int_equal(tracefs_threshold(1), BUDGET + ADDED);

        assert_ok(t.backend->ops->set_budget(t.backend, index, budget));
        changed = tracefs_read(MONITOR);
        assert_non_null(strstr(changed, "\np:tlobd_1 /"));
        assert_int_equal(tracefs_threshold(1), budget[0] + ADDED);
        assert_int_equal(tracefs_count_lines(), 2);

        assert_ok(t.backend->ops->remove(t.backend, index, NULL, NULL));
        tracefs_expect_lines(&t, 1);
        tracefs_finish(&t);
}

/* The times are those at which the events were raised, whatever the CPU. */
static void test_breakdown(void **state) {
        uint64_t before, after;
        Tracefs t;
        pid_t child;
        int index;

        tracefs_begin(&t, "named");
        child = tracefs_start_program(tracefs_target());
        index = tracefs_add_marks(&t, "5ms");
        tracefs_assert_told(&t, "a later version with names");
        before = now_ns();
        raise_window(child);
        after = now_ns();
        tracefs_wait(&t);

        assert_int_equal(t.n_reports, 1);
        assert_int_equal(t.reports[0].backend_index, index);
        assert_int_equal(t.reports[0].tid, child);
        assert_int_equal(t.reports[0].state, TLOB_RUNNING);
        assert_in_range(t.reports[0].time_ns, before, after);
        assert_in_range(t.reports[0].elapsed_ns, 7000000, after - before);
        assert_in_range(t.reports[0].spent_ns[TLOB_RUNNING], 1000000, after - before - 6000000);
        assert_in_range(t.reports[0].spent_ns[TLOB_WAITING], 2000000, after - before - 5000000);
        assert_in_range(t.reports[0].spent_ns[TLOB_SLEEPING], 4000000, after - before - 3000000);

        /* Once: an error that follows belongs to nothing. */
        raise_error_env(child, "running", "budget_exceeded");
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        tracefs_assert_told(&t, "1 errors without a breakdown");
        tracefs_stop_program(child);
        tracefs_finish(&t);
}

/* What looks like a violation, and is none. */
static void test_no_violation(void **state) {
        Tracefs t;
        pid_t child;

        tracefs_begin(&t, "named");
        child = tracefs_start_program(tracefs_target());

        /* It began before the binding was there. */
        raise_change(child, "stopped", "start", "running");
        pass(6);
        (void) tracefs_add_marks(&t, "5ms");
        raise_error_env(child, "running", "budget_exceeded");
        /* Within the budget: the error that a stop under way is seen to cause. */
        raise_change(child, "stopped", "start", "running");
        raise_error_env(child, "waiting", "switch_in");
        /* It had stopped. */
        raise_change(child, "stopped", "start", "running");
        pass(6);
        raise_change(child, "running", "stop", "stopped");
        raise_error_env(child, "running", "budget_exceeded");
        /* The monitor lost track of it. */
        raise_change(child, "stopped", "start", "running");
        raise_error(child, "running", "wakeup");
        pass(6);
        raise_error_env(child, "running", "budget_exceeded");

        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 0);
        tracefs_assert_told(&t, "1 violations of bindings that are gone");
        tracefs_assert_told(&t, "1 violations whose times are below");
        tracefs_assert_told(&t, "2 errors without a breakdown");
        tracefs_assert_told(&t, "1 windows aborted");
        tracefs_stop_program(child);
        tracefs_finish(&t);
}

static int add_to(Tracefs *t, const char *file, const char *start, const char *stop, char **ret) {
        return tracefs_add(t,
                           (const char *[]) { "Executable", file, "Start", start, "Stop", stop,
                                              "BudgetSec", "5ms", NULL },
                           0, 0, ret);
}

/* Of two programs, each event is of one; within a program nobody could tell. */
static void test_which_binding(void **state) {
        _cleanup_free_ char *error = NULL, *same = NULL, *library = NULL;
        int first, second;
        pid_t one, two;
        char copy[] = "/tmp/tlob-names-XXXXXX", libc[] = "/tmp/tlob-names-XXXXXX";
        Tracefs t;

        tracefs_copy_target(copy);
        tracefs_copy_library(libc);
        tracefs_begin(&t, "named");
        first = tracefs_add_marks(&t, "5ms");
        second = add_to(&t, copy, "target_one", "target_two", &error);
        if (second < 0)
                fail_msg("%s", error);
        assert_int_equal(add_to(&t, copy, "target_two", "target_tail", &same), -EOPNOTSUPP);
        assert_non_null(strstr(same, "could not be told apart from"));
        assert_int_equal(add_to(&t, libc, "fsync", "fdatasync", &library), -EOPNOTSUPP);
        assert_non_null(strstr(library, "could not be told apart from"));
        assert_int_equal(tracefs_count_lines(), 3);

        one = tracefs_start_program(tracefs_target());
        two = tracefs_start_program(copy);
        raise_window(two);
        raise_window(one);
        raise_window(getpid()); /* the program of someone else's binding */
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 2);
        assert_int_equal(t.reports[0].backend_index, second);
        assert_int_equal(t.reports[1].backend_index, first);
        tracefs_assert_told(&t, "1 violations of bindings that are gone, or of others");

        /* A task that is gone may have run any of them. */
        tracefs_stop_program(one);
        raise_window(one);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 2);
        tracefs_assert_told(&t, "1 violations that may be of several bindings");
        tracefs_stop_program(two);
        tracefs_finish(&t);
        assert_ok(unlink(copy));
        assert_ok(unlink(libc));
}

/* The last report of a binding is still its own. */
static void test_removed_at_once(void **state) {
        uint32_t index;
        pid_t child;
        Tracefs t;

        tracefs_begin(&t, "named");
        index = (uint32_t) tracefs_add_marks(&t, "5ms");
        child = tracefs_start_program(tracefs_target());
        raise_window(child);
        assert_ok(t.backend->ops->remove(t.backend, index, NULL, NULL));
        tracefs_collect(&t);
        assert_int_equal(t.n_reports, 1);
        assert_int_equal(t.reports[0].backend_index, index);

        tracefs_expect_lines(&t, 1);
        raise_window(child);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        tracefs_assert_told(&t, "1 violations of bindings that are gone");
        tracefs_stop_program(child);
        tracefs_finish(&t);
}

/* Someone else's comes into the same program: nobody can tell any more. */
static void test_foreign(void **state) {
        _cleanup_free_ char *line = NULL, *path = realpath(tracefs_target(), NULL);
        pid_t child;
        Tracefs t;

        tracefs_begin(&t, "named");
        (void) tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);
        child = tracefs_start_program(tracefs_target());
        assert_true(asprintf(&line, "p:other %s:0x40 0x44 threshold=5000", path) > 0);
        assert_ok(tracefs_write(MONITOR, line));
        tracefs_wait(&t);
        raise_window(child);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 0);
        tracefs_assert_told(&t, "1 violations that may be of several bindings");

        assert_ok(tracefs_write(MONITOR, "-:other"));
        tracefs_wait(&t);
        raise_window(child);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        tracefs_stop_program(child);
        tracefs_finish(&t);
}

/* More than the buffers hold: no breakdown is made of what is left. */
static void test_loss(void **state) {
        pid_t child;
        Tracefs t;

        tracefs_begin(&t, "named");
        (void) tracefs_add_marks(&t, "5ms");
        child = tracefs_start_program(tracefs_target());
        raise_on_cpu(0);
        raise_change(child, "stopped", "start", "running");
        pass(6);
        for (size_t i = 0; i < 20000; i++)
                raise_change(getpid(), "running", "preempt", "waiting");
        raise_on_cpu(LAST_CPU);
        raise_error_env(child, "running", "budget_exceeded");
        raise_on_cpu(-1);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 0);
        assert_true(t.backend->ops->lost(t.backend) > 0);

        /* And what begins after that is measured. */
        raise_window(child);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        tracefs_stop_program(child);
        tracefs_finish(&t);
}

/* A daemon that dies: its bindings are found by their names. */
static void test_crash(void **state) {
        _cleanup_free_ char *error = NULL, *text = NULL;
        pid_t child, daemon;
        char copy[] = "/tmp/tlob-names-XXXXXX";
        Tracefs t;
        int status;

        tracefs_copy_target(copy);
        tracefs_start(&t, "named");
        daemon = fork();
        assert_true(daemon >= 0);
        if (daemon == 0) {
                tracefs_make_backend(&t);
                (void) tracefs_add_marks(&t, "5ms");
                (void) add_to(&t, copy, "target_one", "target_two", &error);
                _exit(0);
        }
        assert_int_equal(waitpid(daemon, &status, 0), daemon);
        assert_int_equal(status, 0);
        assert_int_equal(tracefs_count_lines(), 3);

        tracefs_make_backend(&t);
        (void) tracefs_add_marks(&t, "5ms");
        assert_int_equal(tracefs_count_lines(), 3);
        tracefs_expect_notice(&t, "Removing 1 bindings", BACKEND_NO_INDEX);
        text = tracefs_read(MONITOR);
        assert_non_null(strstr(text, "\np:tlobd_1 /"));
        tracefs_expect_lines(&t, 2);

        child = tracefs_start_program(tracefs_target());
        raise_window(child);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        tracefs_stop_program(child);
        tracefs_finish(&t);
        assert_ok(unlink(copy));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_driving),
                cmocka_unit_test(test_breakdown),
                cmocka_unit_test(test_no_violation),
                cmocka_unit_test(test_which_binding),
                cmocka_unit_test(test_removed_at_once),
                cmocka_unit_test(test_foreign),
                cmocka_unit_test(test_loss),
                cmocka_unit_test(test_crash),
        };

        cmocka_set_test_filter(getenv("TLOB_TEST_FILTER"));
        return cmocka_run_group_tests(tests, tracefs_setup_namespace, tracefs_teardown_namespace);
}
