/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the monitor says, through the real ring buffer: which of it is a violation, of which binding
 * and which unit, and what was lost.
 */

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cgroup.h"
#include "test.h"
#include "tracefs.h"

#define BUDGET UINT64_C(5000000)

static void pass(unsigned msec) {
        struct timespec ts = { .tv_nsec = msec * 1000000L };

        (void) nanosleep(&ts, NULL);
}

static void test_hearing(void **state) {
        static const char *const dialects[] = { "v2", "v3", "v4", "v5" };

        for (size_t i = 0; i < ELEMENTSOF(dialects); i++) {
                uint64_t before, threshold;
                const Report *report;
                Statistics statistics;
                Tracefs t;
                int index;

                tracefs_begin(&t, dialects[i]);
                index = tracefs_add_marks(&t, "5ms");
                threshold = tracefs_threshold(1);
                before = now_ns();
                raise_violation(getpid(), "sleeping", threshold, 1000000, 200000, 3900000);
                tracefs_wait(&t);

                assert_int_equal(t.n_reports, 1);
                report = &t.reports[0];
                assert_int_equal(report->type, REPORT_VIOLATION);
                assert_int_equal(report->backend_index, index);
                assert_int_equal(report->spent_ns[TLOB_RUNNING], 1000000);
                assert_int_equal(report->spent_ns[TLOB_WAITING], 200000);
                assert_int_equal(report->spent_ns[TLOB_SLEEPING], 3900000);
                assert_int_equal(report->state, TLOB_SLEEPING);
                assert_int_equal(report->budget, TLOB_BUDGET_TOTAL);
                assert_in_range(report->time_ns, before, now_ns());
                assert_int_equal(report->tid, getpid());
                assert_int_equal(report->pid, getpid());
                assert_string_equal(report->comm, "test-hearing");

                assert_ok(t.backend->ops->statistics(t.backend, (uint32_t) index, &statistics));
                assert_int_equal(statistics.counters.violations, 1);
                assert_true(statistics.max_ns == STATISTIC_UNKNOWN);
                tracefs_finish(&t);
        }
}

/* What the daemon does to report a violation is none. */
static void test_own_violations_are_dropped(void **state) {
        uint64_t threshold;
        pid_t child;
        Tracefs t;

        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                pause();
                _exit(0);
        }
        tracefs_leave_out_self = true;
        tracefs_begin(&t, "v3");
        tracefs_leave_out_self = false;
        (void) tracefs_add_marks(&t, "5ms");
        threshold = tracefs_threshold(1);
        raise_violation(getpid(), "sleeping", threshold, 1000000, 200000, 3900000);
        raise_violation(child, "sleeping", threshold, 1000000, 200000, 3900000);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        assert_int_equal(t.reports[0].pid, child);
        tracefs_finish(&t);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Two bindings of one budget have thresholds of their own, and each event names one of them. */
static void test_which_binding(void **state) {
        _cleanup_free_ char *error = NULL;
        int first, second;
        Tracefs t;

        tracefs_begin(&t, "v3");
        first = tracefs_add_marks(&t, "5ms");
        second = tracefs_add(&t,
                             (const char *[]) { "Executable", tracefs_target(), "Start",
                                                "target_two", "Stop", "target_one", "BudgetSec",
                                                "5ms", NULL },
                             0, 0, &error);
        assert_true(second >= 0);
        assert_int_equal(tracefs_threshold(1), BUDGET);
        assert_int_equal(tracefs_threshold(2), BUDGET + 1);

        raise_violation(getpid(), "running", BUDGET + 1, 6000000, 0, 0);
        raise_violation(getpid(), "running", BUDGET, 6000000, 0, 0);
        raise_violation(getpid(), "running", BUDGET + 2, 6000000, 0, 0); /* nobody's */
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 2);
        assert_int_equal(t.reports[0].backend_index, second);
        assert_int_equal(t.reports[1].backend_index, first);
        assert_int_not_equal(t.reports[0].id, t.reports[1].id);
        tracefs_assert_told(&t, "1 violations of bindings that are gone");
        tracefs_finish(&t);
}

/* What looks like a violation, and is none. */
static void test_no_violation(void **state) {
        Tracefs t;

        tracefs_begin(&t, "v3");
        tracefs_add_marks(&t, "5ms");
        raise_error_env(getpid(), "waiting", "switch_in");
        raise_violation(getpid(), "running", BUDGET, 6000000, 0, 0);
        raise_error(getpid(), "running", "wakeup");
        raise_detail(getpid(), BUDGET, 70570, 0, 5446689);
        raise_detail(getpid(), BUDGET, 6000000, 0, 0); /* monitoring_on went from 0 to 1 */
        raise_violation(getpid(), "running", BUDGET, 1000, 0, 0); /* below its own threshold */
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        tracefs_assert_told(&t, "1 windows aborted");
        tracefs_assert_told(&t, "1 errors without a breakdown");
        tracefs_assert_told(&t, "1 violations whose times are below");
        tracefs_finish(&t);
}

/* From v5 on, a stop that comes too late says so without a breakdown, and it is true. */
static void test_stop(void **state) {
        const uint64_t elapsed = 20740442;
        pid_t program, gone;
        uint32_t index;
        Tracefs t;

        tracefs_begin(&t, "v5");
        index = (uint32_t) tracefs_add_marks(&t, "5ms");
        program = tracefs_start_program(tracefs_target());
        gone = tracefs_start_program(tracefs_target());
        tracefs_stop_program(gone);
        pass(50);
        raise_error_env_after(program, "running", "stop", elapsed);
        raise_error_env_after(program, "running", "stop", 12345); /* since the deadline */
        raise_error_env_after(getpid(), "running", "stop", elapsed);
        raise_error_env_after(gone, "running", "stop", elapsed);
        raise_error_env_after(program, "waiting", "switch_in", elapsed);
        raise_violation(program, "running", BUDGET, 6000000, 0, 0);
        tracefs_wait(&t);

        assert_int_equal(t.n_reports, 3);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(t.reports[i].backend_index, index);
                assert_int_equal(t.reports[i].tid, program);
                assert_int_equal(t.reports[i].state, TLOB_RUNNING);
                assert_true(t.reports[i].spent_ns[TLOB_SLEEPING] == STATISTIC_UNKNOWN);
                assert_true(t.reports[i].elapsed_ns == (i == 0 ? elapsed : STATISTIC_UNKNOWN));
        }
        tracefs_assert_told(&t, "2 violations found by a stop");
        tracefs_assert_told(&t,
                            "1 violations that may be of several bindings"); /* also of this one */
        tracefs_assert_told(&t, "1 errors without a breakdown");
        tracefs_stop_program(program);
        tracefs_finish(&t);
}

/* Before v5, such a stop may have come in time. */
static void test_early_stop(void **state) {
        Tracefs t;

        tracefs_begin(&t, "v4");
        tracefs_add_marks(&t, "5ms");
        raise_error_env_after(getpid(), "running", "stop", 20740442);
        raise_violation(getpid(), "running", BUDGET, 6000000, 0, 0);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        tracefs_assert_told(&t, "1 errors without a breakdown");
        tracefs_finish(&t);
}

/* Any label, as the real one has them. */
static void test_labels(void **state) {
        static const char *const labels[] = { "budget_exceeded", "sleep",  "preempt",
                                              "switch_in",       "wakeup", "none" };
        Tracefs t;

        tracefs_begin(&t, "v3");
        tracefs_add_marks(&t, "5ms");
        for (size_t i = 0; i < ELEMENTSOF(labels); i++) {
                raise_error_env(getpid(), "waiting", labels[i]);
                raise_detail(getpid(), BUDGET, 0, BUDGET, i);
                tracefs_wait(&t);
                assert_int_equal(t.n_reports, i + 1);
                assert_int_equal(t.reports[i].state, TLOB_WAITING);
        }
        tracefs_finish(&t);
}

/* A child in a cgroup of its own, which sleeps until it is killed. */
static pid_t start_in_cgroup(const char *path) {
        char procs[4400], pid[16];
        pid_t child;

        (void) snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                pause();
                _exit(0);
        }
        (void) snprintf(pid, sizeof(pid), "%i", child);
        {
                _cleanup_close_ int fd = open(procs, O_WRONLY | O_CLOEXEC);

                assert_int_equal(write(fd, pid, strlen(pid)), strlen(pid));
        }
        return child;
}

/* It is over its budget, and gone when that is heard of. */
static void overrun_and_end(Tracefs *t, pid_t child) {
        raise_violation(child, "running", BUDGET, 6000000, 0, 0);
        (void) kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        tracefs_wait(t);
}

static void test_confinement(void **state) {
        _cleanup_free_ char *error = NULL;
        _cleanup_close_ int root = cgroup_open_root();
        char link[64], path[4096], unit[4200], worker[4300];
        unsigned level;
        uint64_t id;
        pid_t child;
        int index;
        Tracefs t;
        ssize_t n;

        assert_true(root >= 0);
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%i", root);
        n = readlink(link, path, sizeof(path) - 1);
        assert_true(n > 0);
        path[n] = '\0';
        (void) snprintf(unit, sizeof(unit), "%s/tlob-test-%i.service", path, getpid());
        (void) snprintf(worker, sizeof(worker), "%s/worker", unit);
        assert_ok(mkdir(unit, 0755));
        assert_ok(mkdir(worker, 0755));
        assert_ok(cgroup_path_get_id(root, unit + strlen(path), &id, &level));
        child = start_in_cgroup(worker);

        tracefs_begin(&t, "v3");
        index = tracefs_add(&t,
                            (const char *[]) { "Executable", tracefs_target(), "Start",
                                               "target_one", "Stop", "target_two", "BudgetSec",
                                               "5ms", "Unit", "tlob-test.service", NULL },
                            0, 0, &error);
        assert_true(index >= 0);

        /* The unit does not run. */
        raise_violation(child, "running", BUDGET, 6000000, 0, 0);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 0);
        tracefs_assert_told(&t, "1 violations of tasks outside");

        assert_ok(t.backend->ops->set_cgroup(t.backend, (uint32_t) index, id, level));
        raise_violation(getpid(), "running", BUDGET, 6000000, 0, 0);
        raise_violation(child, "running", BUDGET, 6000000, 0, 0);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        assert_int_equal(t.reports[0].tid, child);
        tracefs_assert_told(&t, "2 violations of tasks outside");

        /* It has gone, but it was seen before. */
        overrun_and_end(&t, child);
        assert_int_equal(t.n_reports, 2);
        assert_int_equal(t.reports[1].pid, child);
        assert_int_equal(t.reports[1].cgroup_id, t.reports[0].cgroup_id);

        /* One that was not. */
        overrun_and_end(&t, start_in_cgroup(worker));
        assert_int_equal(t.n_reports, 2);
        tracefs_assert_told(&t, "1 violations of tasks that had ended");
        tracefs_finish(&t);

        assert_ok(rmdir(worker));
        assert_ok(rmdir(unit));
}

/* A task that was never seen, and is gone: a violation all the same. */
static void test_unknown_task(void **state) {
        pid_t child = fork();
        Tracefs t;

        assert_true(child >= 0);
        if (child == 0)
                _exit(0);
        assert_int_equal(waitpid(child, NULL, 0), child);

        tracefs_begin(&t, "v3");
        tracefs_add_marks(&t, "5ms");
        raise_violation(child, "running", BUDGET, 6000000, 0, 0);
        raise_violation(-1, "running", BUDGET, 6000000, 0, 0);
        raise_violation(0, "running", BUDGET, 6000000, 0, 0);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 3);
        assert_int_equal(t.reports[0].tid, child);
        assert_int_equal(t.reports[0].pid, 0);
        assert_string_equal(t.reports[0].comm, "");
        tracefs_finish(&t);
}

/* A process of that id, which nobody has; it waits to be killed. */
static void start_with_id(pid_t id) {
        struct clone_args arguments = {
                .exit_signal = SIGCHLD,
                .set_tid = (uintptr_t) &id,
                .set_tid_size = 1,
        };
        long child = syscall(SYS_clone3, &arguments, sizeof(arguments));

        if (child == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        (void) pause();
        }
        assert_int_equal(child, id);
}

/* Its id is another one's when the violation is read: that one had nothing to do with it. */
static void test_id_of_another(void **state) {
        Tracefs t;
        pid_t id;

        tracefs_begin(&t, "v3");
        tracefs_add_marks(&t, "5ms");
        id = fork();
        assert_true(id >= 0);
        if (id == 0)
                _exit(0);
        assert_int_equal(waitpid(id, NULL, 0), id);
        raise_violation(id, "running", BUDGET, 6000000, 0, 0);
        /* It is known to a clock tick when tasks begin. */
        pass(50);
        start_with_id(id);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        assert_int_equal(t.reports[0].tid, id);
        assert_int_equal(t.reports[0].pid, 0);
        raise_violation(id, "running", BUDGET, 6000000, 0, 0);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 2);
        assert_int_equal(t.reports[1].pid, id);
        (void) kill(id, SIGKILL);
        assert_int_equal(waitpid(id, NULL, 0), id);
        tracefs_finish(&t);
}

/* Where the daemon sees other process ids than the events have: none is better than a wrong one. */
static void listen_elsewhere(Tracefs *t, pid_t id) {
        const char *const keys[] = { "Executable", tracefs_target(), "Start",     "target_one",
                                     "Stop",       "target_two",     "BudgetSec", "5ms",
                                     "Unit",       "a.service",      NULL };
        _cleanup_free_ char *error = NULL;

        assert_ok(mount("proc", "/proc", "proc", 0, NULL));
        tracefs_make_backend(t);
        (void) tracefs_add_marks(t, "5ms");
        raise_violation(id, "running", BUDGET, 6000000, 0, 0);
        tracefs_wait(t);
        assert_int_equal(t->n_reports, 1);
        assert_int_equal(t->reports[0].tid, 0);
        assert_int_equal(t->reports[0].pid, 0);
        assert_string_equal(t->reports[0].comm, "");
        assert_int_equal(tracefs_add(t, keys, 0, 0, &error), -EOPNOTSUPP);
        assert_non_null(strstr(error, "does not see the machine's process IDs"));
        t->backend = t->backend->ops->free(t->backend);
}

static void test_other_process_ids(void **state) {
        pid_t child, id = getpid();
        int status;
        Tracefs t;

        tracefs_start(&t, "v3");
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                pid_t first;

                /* Its first process is the next child. */
                assert_ok(unshare(CLONE_NEWPID | CLONE_NEWNS));
                first = fork();
                assert_true(first >= 0);
                if (first == 0) {
                        listen_elsewhere(&t, id);
                        _exit(0);
                }
                assert_int_equal(waitpid(first, &status, 0), first);
                _exit(status == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        tracefs_finish(&t);
}

/* More than the buffers hold: what is missing is counted, to the event. */
static void test_loss(void **state) {
        const size_t n = 20000;
        uint64_t lost;
        Tracefs t;

        tracefs_begin(&t, "v3");
        tracefs_add_marks(&t, "5ms");
        for (size_t i = 0; i < n; i++)
                raise_violation(getpid(), "running", BUDGET, 9000000, 0, 0);
        tracefs_wait(&t);
        lost = t.backend->ops->lost(t.backend);
        assert_true(lost > 0);
        assert_in_range(2 * t.n_reports + lost, 2 * n - 2 * 64, 2 * n);
        tracefs_finish(&t);
}

/* As many as there are is no loss. */
static void test_flood(void **state) {
        const size_t n = 20000;
        Tracefs t;

        tracefs_begin(&t, "v3");
        tracefs_add_marks(&t, "5ms");
        for (size_t i = 0; i < n; i++) {
                raise_violation(getpid(), "running", BUDGET, 9000000, 0, 0);
                if (i % 500 == 0)
                        tracefs_collect(&t);
        }
        tracefs_collect(&t);
        assert_int_equal(t.n_reports, n);
        assert_int_equal(t.backend->ops->lost(t.backend), 0);
        for (size_t i = 1; i < n; i++)
                assert_true(t.reports[i - 1].time_ns < t.reports[i].time_ns);
        tracefs_finish(&t);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_hearing),
                cmocka_unit_test(test_own_violations_are_dropped),
                cmocka_unit_test(test_which_binding),
                cmocka_unit_test(test_no_violation),
                cmocka_unit_test(test_stop),
                cmocka_unit_test(test_early_stop),
                cmocka_unit_test(test_labels),
                cmocka_unit_test(test_confinement),
                cmocka_unit_test(test_unknown_task),
                cmocka_unit_test(test_id_of_another),
                cmocka_unit_test(test_other_process_ids),
                cmocka_unit_test(test_loss),
                cmocka_unit_test(test_flood),
        };

        cmocka_set_test_filter(getenv("TLOB_TEST_FILTER"));
        return cmocka_run_group_tests(tests, tracefs_setup_namespace, tracefs_teardown_namespace);
}
