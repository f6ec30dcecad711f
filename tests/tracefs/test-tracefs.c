/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The kernel back end against a stand-in of the monitor: finding it in all its dialects, driving it,
 * hearing it, and what others do to it. Each test begins with a poisoned tracing file system, and ends
 * with the proof that it is as it was.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "cgroup.h"
#include "kernel-tracing.h"
#include "test.h"
#include "tracefs.h"

#define MONITOR "rv/monitors/tlob/monitor"
#define ENABLE  "rv/monitors/tlob/enable"
#define BUDGET  UINT64_C(5000000)

static const char *target(void) {
        const char *path = getenv("TLOB_TEST_TARGET");

        if (!path)
                fail_msg("TLOB_TEST_TARGET does not name the target.");
        return path;
}

static int add(Tracefs *t, const char *budget) {
        _cleanup_free_ char *error = NULL;
        int index;

        index = tracefs_add(t,
                            (const char *[]){ "Executable", target(), "Start", "target_one", "Stop",
                                              "target_two", "BudgetSec", budget, NULL },
                            0, 0, &error);
        if (index < 0)
                fail_msg("%s", error);
        return index;
}

static void begin(Tracefs *t, const char *dialect) {
        tracefs_start(t, dialect);
        tracefs_make_backend(t);
}

static size_t count_lines(void) {
        _cleanup_free_ char *text = tracefs_read(MONITOR);
        size_t n = 0;

        for (const char *p = text; *p; p++)
                n += *p == '\n';
        return n;
}

static bool is_enabled(void) {
        _cleanup_free_ char *text = tracefs_read(ENABLE);

        return text[0] == '1';
}

/* True if a sentence of the limitations has that in it. */
static bool is_told(Tracefs *t, const char *part) {
        for (const char *const *p = t->backend->ops->limitations(t->backend); *p; p++)
                if (strstr(*p, part))
                        return true;
        return false;
}

static void assert_told(Tracefs *t, const char *part) {
        if (!is_told(t, part)) {
                for (const char *const *p = t->backend->ops->limitations(t->backend); *p; p++)
                        print_error("%s\n", *p);
                fail_msg("No limitation tells '%s'.", part);
        }
}

static uint64_t now_ns(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

/* Mounted at an unusual place: used there. */
static void test_mounted_elsewhere(void **state) {
        _cleanup_free_ char *reason = NULL;
        KernelTracing tracing;

        assert_ok(kernel_tracing_init(&tracing, &reason));
        assert_false(tracing.mounted);
        assert_string_not_equal(tracing.path, "/sys/kernel/tracing");
        assert_true(kernel_tracing_has(&tracing, "uprobe_events"));
        kernel_tracing_done(&tracing);
        assert_ok(kernel_tracing_init(&tracing, &reason));
        kernel_tracing_done(&tracing);
}

/* Nowhere: mounted as long as it is needed. */
static void test_not_mounted(void **state) {
        _cleanup_free_ char *reason = NULL;
        KernelTracing tracing;

        tracefs_unmount_real();
        assert_true(access("/sys/kernel/tracing/instances", F_OK) < 0);
        assert_ok(kernel_tracing_init(&tracing, &reason));
        assert_true(tracing.mounted);
        assert_true(kernel_tracing_has(&tracing, "uprobe_events"));
        kernel_tracing_done(&tracing);
        assert_true(access("/sys/kernel/tracing/instances", F_OK) < 0);
        tracefs_mount_real();
}

static void test_finding(void **state) {
        static const struct {
                const char *dialect;
                int error;
                const char *said;
        } cases[] = {
                { "none", -ENOENT, "no runtime verification" },
                { "other", -ENOENT, "no tlob monitor" },
                { "v1", -EOPNOTSUPP, "first version" },
                { "v2", 0, NULL },
                { "v3", 0, NULL },
                { "v4", 0, NULL },
                { "v5", 0, NULL },
                { "named", -EOPNOTSUPP, "neither the binding" },
                { "locked", -EPERM, "locked down" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *reason = NULL;
                Tracefs t;

                tracefs_start(&t, cases[i].dialect);
                assert_int_equal(backend_kernel_ops.probe(&reason), cases[i].error);
                if (cases[i].said)
                        assert_non_null(strstr(reason, cases[i].said));
                tracefs_finish(&t);
        }
}

/* Events of one version with the answers of another: never used. */
static void test_contradiction(void **state) {
        _cleanup_free_ char *reason = NULL;
        Tracefs t;

        tracefs_start(&t, "v2");
        tracefs_change_dialect(&t, "v3");
        assert_int_equal(backend_kernel_ops.probe(&reason), -EOPNOTSUPP);
        assert_non_null(strstr(reason, "off by a thousand"));
        tracefs_finish(&t);
}

static void test_not_ready(void **state) {
        _cleanup_free_ char *off = NULL, *panic = NULL;
        Tracefs t;

        tracefs_start(&t, "v3");
        assert_ok(tracefs_write("rv/monitoring_on", "0"));
        assert_int_equal(backend_kernel_ops.probe(&off), -EOPNOTSUPP);
        assert_non_null(strstr(off, "switched off"));
        assert_ok(tracefs_write("rv/monitoring_on", "1"));

        assert_ok(tracefs_write("rv/monitors/tlob/reactors", "panic"));
        assert_int_equal(backend_kernel_ops.probe(&panic), -EOPNOTSUPP);
        assert_non_null(strstr(panic, "stop the machine"));
        assert_ok(tracefs_write("rv/monitors/tlob/reactors", "printk"));
        tracefs_finish(&t);
}

static void test_add_and_remove(void **state) {
        static const char *const dialects[] = { "v2", "v3", "v4", "v5" };

        for (size_t i = 0; i < ELEMENTSOF(dialects); i++) {
                uint64_t unit = streq(dialects[i], "v2") ? 1000 : 1;
                _cleanup_free_ char *text = NULL, *path = realpath(target(), NULL);
                Statistics final;
                Tracefs t;
                int index;

                begin(&t, dialects[i]);
                assert_false(is_enabled());
                index = add(&t, "5ms");
                assert_true(is_enabled());
                assert_int_equal(tracefs_threshold(1), BUDGET / unit);
                text = tracefs_read(MONITOR);
                assert_non_null(strstr(text, path));

                assert_ok(t.backend->ops->remove(t.backend, (uint32_t) index, &final, NULL));
                assert_int_equal(count_lines(), 1);
                assert_int_equal(final.counters.violations, 0);
                assert_true(final.counters.starts == STATISTIC_UNKNOWN);
                tracefs_finish(&t);
        }
}

/* Budgets that are no whole microseconds: rounded up, never down. */
static void test_microseconds(void **state) {
        Tracefs t;

        begin(&t, "v2");
        add(&t, "1500ns");
        assert_int_equal(tracefs_threshold(1), 2);
        tracefs_finish(&t);
}

static void test_enabled_before(void **state) {
        Tracefs t;

        tracefs_start(&t, "v3");
        assert_ok(tracefs_write(ENABLE, "1"));
        tracefs_take_stock(&t);
        tracefs_make_backend(&t);
        add(&t, "5ms");
        tracefs_finish(&t);
}

static void test_hearing(void **state) {
        static const char *const dialects[] = { "v2", "v3", "v4", "v5" };

        for (size_t i = 0; i < ELEMENTSOF(dialects); i++) {
                uint64_t before, threshold;
                const Report *report;
                Statistics statistics;
                Tracefs t;
                int index;

                begin(&t, dialects[i]);
                index = add(&t, "5ms");
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
                assert_string_equal(report->comm, "test-tracefs");

                assert_ok(t.backend->ops->statistics(t.backend, (uint32_t) index, &statistics));
                assert_int_equal(statistics.counters.violations, 1);
                assert_true(statistics.max_ns == STATISTIC_UNKNOWN);
                tracefs_finish(&t);
        }
}

/* Two bindings of one budget have thresholds of their own, and each event names one of them. */
static void test_which_binding(void **state) {
        _cleanup_free_ char *error = NULL;
        int first, second;
        Tracefs t;

        begin(&t, "v3");
        first = add(&t, "5ms");
        second = tracefs_add(&t,
                             (const char *[]){ "Executable", target(), "Start", "target_two",
                                               "Stop", "target_one", "BudgetSec", "5ms", NULL },
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
        assert_told(&t, "1 violations of bindings that are gone");
        tracefs_finish(&t);
}

/* What looks like a violation, and is none. */
static void test_no_violation(void **state) {
        Tracefs t;

        begin(&t, "v3");
        add(&t, "5ms");
        raise_error_env(getpid(), "waiting", "switch_in");
        raise_violation(getpid(), "running", BUDGET, 6000000, 0, 0);
        raise_error(getpid(), "running", "wakeup");
        raise_detail(getpid(), BUDGET, 70570, 0, 5446689);
        raise_detail(getpid(), BUDGET, 6000000, 0, 0); /* monitoring_on went from 0 to 1 */
        raise_violation(getpid(), "running", BUDGET, 1000, 0, 0); /* below its own threshold */
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        assert_told(&t, "1 windows aborted");
        assert_told(&t, "1 errors without a breakdown");
        assert_told(&t, "1 violations whose times are below");
        tracefs_finish(&t);
}

/* Any label, as the real one has them. */
static void test_labels(void **state) {
        static const char *const labels[] = { "budget_exceeded", "sleep",  "preempt",
                                              "switch_in",       "wakeup", "none" };
        Tracefs t;

        begin(&t, "v3");
        add(&t, "5ms");
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

        begin(&t, "v3");
        index = tracefs_add(&t,
                            (const char *[]){ "Executable", target(), "Start", "target_one", "Stop",
                                              "target_two", "BudgetSec", "5ms", "Unit",
                                              "tlob-test.service", NULL },
                            0, 0, &error);
        assert_true(index >= 0);

        /* The unit does not run. */
        raise_violation(child, "running", BUDGET, 6000000, 0, 0);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 0);
        assert_told(&t, "1 violations of tasks outside");

        assert_ok(t.backend->ops->set_cgroup(t.backend, (uint32_t) index, id, level));
        raise_violation(getpid(), "running", BUDGET, 6000000, 0, 0);
        raise_violation(child, "running", BUDGET, 6000000, 0, 0);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        assert_int_equal(t.reports[0].tid, child);
        assert_told(&t, "2 violations of tasks outside");

        /* It has gone, but it was seen before. */
        raise_violation(child, "running", BUDGET, 6000000, 0, 0);
        (void) kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 2);
        assert_int_equal(t.reports[1].pid, child);
        assert_int_equal(t.reports[1].cgroup_id, t.reports[0].cgroup_id);
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

        begin(&t, "v3");
        add(&t, "5ms");
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

static void test_set_budget(void **state) {
        static const char *const dialects[] = { "v2", "v3", "v5" };

        for (size_t i = 0; i < ELEMENTSOF(dialects); i++) {
                uint64_t budget[TLOB_N_BUDGETS] = { 7000000, BUDGET_NONE, BUDGET_NONE,
                                                    BUDGET_NONE };
                uint64_t unit = streq(dialects[i], "v2") ? 1000 : 1;
                _cleanup_free_ char *text = NULL;
                uint32_t index;
                Tracefs t;

                begin(&t, dialects[i]);
                index = (uint32_t) add(&t, "5ms");
                assert_ok(t.backend->ops->set_budget(t.backend, index, budget));
                assert_true(is_enabled());
                assert_int_equal(count_lines(), 2);
                text = tracefs_read(MONITOR);
                assert_null(strstr(text, "threshold=5000"));

                /* A window that was open then has the old threshold: its stop may have been missed. */
                raise_violation(getpid(), "running", BUDGET / unit, 9000000, 0, 0);
                raise_violation(getpid(), "running", tracefs_threshold(1), 9000000, 0, 0);
                tracefs_wait(&t);
                assert_int_equal(t.n_reports, 1);

                /* The old threshold is not used again: what it causes may still come. */
                budget[0] = BUDGET;
                assert_ok(t.backend->ops->set_budget(t.backend, index, budget));
                assert_int_equal(tracefs_threshold(1), BUDGET / unit + 1);

                budget[0] = BUDGET_NONE;
                assert_int_equal(t.backend->ops->set_budget(t.backend, index, budget), -EOPNOTSUPP);
                budget[0] = BUDGET;
                budget[TLOB_BUDGET_SLEEPING] = BUDGET;
                assert_int_equal(t.backend->ops->set_budget(t.backend, index, budget), -EOPNOTSUPP);
                tracefs_finish(&t);
        }
}

static void test_removed_at_once(void **state) {
        Statistics final;
        uint32_t index;
        Tracefs t;

        begin(&t, "v3");
        index = (uint32_t) add(&t, "5ms");
        raise_violation(getpid(), "running", BUDGET, 9000000, 0, 0);
        assert_ok(t.backend->ops->remove(t.backend, index, &final, NULL));
        tracefs_collect(&t);
        assert_int_equal(t.n_reports, 1);
        assert_int_equal(t.reports[0].backend_index, index);

        raise_violation(getpid(), "running", BUDGET, 9000000, 0, 0);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        tracefs_finish(&t);
}

static void test_cannot(void **state) {
        static const struct {
                const char *keys[9];
                const char *said;
        } cases[] = {
                { { "Executable", "%t", "Function", "target_tail", "BudgetSec", "5ms" },
                  "can be left by a jump" },
                { { "Executable", "%t", "Function", "target_one", "BudgetSec", "1h" },
                  "up to an hour" },
        };
        Tracefs t;

        begin(&t, "v3");
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *error = NULL;
                const char *keys[ELEMENTSOF(cases[i].keys)];

                memcpy(keys, cases[i].keys, sizeof(keys));
                keys[1] = target();
                assert_int_equal(tracefs_add(&t, keys, 0, 0, &error), -EOPNOTSUPP);
                assert_non_null(strstr(error, cases[i].said));
        }
        assert_int_equal(count_lines(), 1);
        tracefs_finish(&t);
}

/* The return of a function: its one RET. */
static void test_function(void **state) {
        _cleanup_free_ char *error = NULL, *text = NULL;
        uint64_t start, stop;
        Tracefs t;

        begin(&t, "v3");
        if (tracefs_add(&t,
                        (const char *[]){ "Executable", target(), "Function", "target_one",
                                          "BudgetSec", "5ms", NULL },
                        0, 0, &error) < 0)
                fail_msg("%s", error);
        text = tracefs_read(MONITOR);
        assert_int_equal(sscanf(strrchr(text, ':'), ":0x%" SCNx64 " 0x%" SCNx64, &start, &stop), 2);
        assert_true(stop > start);
        {
                _cleanup_close_ int fd = open(target(), O_RDONLY | O_CLOEXEC);
                uint8_t byte;

                assert_int_equal(pread(fd, &byte, 1, (off_t) stop), 1);
                assert_int_equal(byte, 0xc3);
        }
        tracefs_finish(&t);
}

static void test_foreign(void **state) {
        _cleanup_free_ char *error = NULL, *line = NULL, *all = NULL;
        const char *const keys[] = { "Executable", target(),    "Start", "target_one", "Stop",
                                     "target_two", "BudgetSec", "5ms",   NULL };
        Tracefs t;
        int index;

        begin(&t, "v3");
        index = add(&t, "5ms");
        tracefs_collect(&t);
        assert_told(&t, "someone else: p ");

        /* The same place, by someone else. */
        all = tracefs_read(MONITOR);
        line = strdup(strchr(all, '\n') + 1);
        assert_ok(t.backend->ops->remove(t.backend, (uint32_t) index, NULL, NULL));
        assert_ok(tracefs_write(MONITOR, line));
        assert_int_equal(tracefs_add(&t, keys, 0, 0, &error), -EEXIST);
        assert_non_null(strstr(error, "Someone else"));

        *strrchr(line, ' ') = '\0'; /* the threshold */
        *strrchr(line, ' ') = '\0'; /* the stop */
        memmove(line + 1, line + 2, strlen(line + 1));
        line[0] = '-';
        assert_ok(tracefs_write(MONITOR, line));
        tracefs_finish(&t);
}

/* Waits until the notices say that. */
static void expect_notice(Tracefs *t, const char *part, uint32_t index) {
        for (int i = 0; i < 10; i++) {
                for (size_t j = 0; j < t->n_notices; j++)
                        if (strstr(t->notices[j].text, part)) {
                                assert_int_equal(t->notices[j].index, index);
                                return;
                        }
                tracefs_wait(t);
        }
        fail_msg("Nothing was said of '%s'.", part);
}

static void test_interference(void **state) {
        _cleanup_free_ char *poison = NULL;
        Tracefs t;
        char *end;

        begin(&t, "v3");
        poison = tracefs_read(MONITOR);
        add(&t, "5ms");
        tracefs_collect(&t);

        assert_ok(tracefs_write(ENABLE, "0"));
        expect_notice(&t, "switched off the kernel's tlob monitor and 1 bindings",
                      BACKEND_NO_INDEX);
        assert_true(is_enabled());
        assert_int_equal(tracefs_threshold(0), BUDGET);

        /* As "echo >enabled_monitors" does. */
        tracefs_forget(&t);
        {
                _cleanup_close_ int fd = open("/sys/kernel/tracing/rv/enabled_monitors",
                                              O_WRONLY | O_TRUNC | O_CLOEXEC);

                assert_true(fd >= 0);
        }
        expect_notice(&t, "switched off", BACKEND_NO_INDEX);
        assert_true(is_enabled());
        assert_int_equal(tracefs_threshold(0), BUDGET);

        /* Another reactor: the monitor stays enabled, and forgets its bindings. */
        tracefs_forget(&t);
        assert_ok(tracefs_write("rv/monitors/tlob/reactors", "nop"));
        expect_notice(&t, "reset the kernel's tlob monitor and 1 bindings", BACKEND_NO_INDEX);
        assert_int_equal(tracefs_threshold(0), BUDGET);

        raise_violation(getpid(), "running", BUDGET, 9000000, 0, 0);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        assert_told(&t, "3 repairs");

        /* What was someone else's is as it was: that was lost by their doing, not ours. */
        t.backend = t.backend->ops->free(t.backend);
        assert_false(is_enabled());
        assert_ok(tracefs_write("rv/monitors/tlob/reactors", "printk"));
        end = strchr(poison, '\n');
        *end = '\0';
        assert_ok(tracefs_write(MONITOR, poison));
        tracefs_finish(&t);
}

static void test_removed_by_hand(void **state) {
        _cleanup_free_ char *text = NULL;
        char line[4096];
        Tracefs t;

        begin(&t, "v3");
        add(&t, "5ms");
        tracefs_collect(&t);
        text = tracefs_read(MONITOR);
        (void) snprintf(line, sizeof(line), "-%s", strchr(text, '\n') + 3);
        *strchr(line, ' ') = '\0';
        assert_ok(tracefs_write(MONITOR, line));
        expect_notice(&t, "reset", BACKEND_NO_INDEX);
        assert_int_equal(count_lines(), 2);
        tracefs_finish(&t);
}

/* Who keeps at it wins. */
static void test_given_up(void **state) {
        _cleanup_free_ char *poison = NULL;
        uint32_t index;
        Tracefs t;

        begin(&t, "v3");
        poison = tracefs_read(MONITOR);
        index = (uint32_t) add(&t, "5ms");
        for (int i = 0; i < 5; i++) {
                assert_ok(tracefs_write(ENABLE, "0"));
                tracefs_wait(&t);
                assert_true(is_enabled());
        }
        assert_ok(tracefs_write(ENABLE, "0"));
        expect_notice(&t, "keep on taking", index);
        assert_false(is_enabled());
        assert_ok(t.backend->ops->remove(t.backend, index, NULL, NULL));

        t.backend = t.backend->ops->free(t.backend);
        *strchr(poison, '\n') = '\0';
        assert_ok(tracefs_write(MONITOR, poison));
        tracefs_finish(&t);
}

static void test_panic(void **state) {
        _cleanup_free_ char *poison = NULL;
        uint32_t index;
        Tracefs t;

        begin(&t, "v3");
        poison = tracefs_read(MONITOR);
        index = (uint32_t) add(&t, "5ms");
        tracefs_collect(&t);
        assert_ok(tracefs_write("rv/monitors/tlob/reactors", "panic"));
        expect_notice(&t, "stop the machine", index);
        assert_ok(t.backend->ops->remove(t.backend, index, NULL, NULL));

        t.backend = t.backend->ops->free(t.backend);
        assert_ok(tracefs_write("rv/monitors/tlob/reactors", "printk"));
        *strchr(poison, '\n') = '\0';
        assert_ok(tracefs_write(MONITOR, poison));
        tracefs_finish(&t);
}

static void test_switched_off(void **state) {
        Tracefs t;

        begin(&t, "v3");
        add(&t, "5ms");
        tracefs_collect(&t);
        assert_ok(tracefs_write("rv/monitoring_on", "0"));
        expect_notice(&t, "switched all of the kernel's monitors off", BACKEND_NO_INDEX);
        assert_told(&t, "monitoring_on is 0");
        assert_ok(tracefs_write("rv/monitoring_on", "1"));
        expect_notice(&t, "on again", BACKEND_NO_INDEX);
        assert_false(is_told(&t, "monitoring_on is 0"));
        tracefs_finish(&t);
}

/* Someone enables it for themselves: it stays enabled. */
static void test_wanted_by_others(void **state) {
        Tracefs t;

        begin(&t, "v3");
        add(&t, "5ms");
        tracefs_collect(&t);
        assert_ok(tracefs_write(ENABLE, "1"));
        tracefs_wait(&t);
        t.backend = t.backend->ops->free(t.backend);
        assert_true(is_enabled());
        assert_int_equal(count_lines(), 1);
        tracefs_take_stock(&t);
        tracefs_finish(&t);
}

static void copy_file(const char *from, const char *to) {
        _cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC);
        _cleanup_close_ int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
        char buffer[65536];
        ssize_t n;

        assert_true(in >= 0 && out >= 0);
        while ((n = read(in, buffer, sizeof(buffer))) > 0)
                assert_int_equal(write(out, buffer, (size_t) n), n);
}

/* By its path, a binding on a file that was replaced cannot be removed. */
static void test_replaced_file(void **state) {
        char path[] = "/tmp/tlob-tracefs-XXXXXX", new[64];
        _cleanup_free_ char *error = NULL;
        int index, fd;
        Tracefs t;

        fd = mkstemp(path);
        assert_true(fd >= 0);
        (void) close(fd);
        copy_file(target(), path);
        begin(&t, "v3");
        index = tracefs_add(&t,
                            (const char *[]){ "Executable", path, "Start", "target_one", "Stop",
                                              "target_two", "BudgetSec", "5ms", NULL },
                            0, 0, &error);
        assert_true(index >= 0);
        tracefs_collect(&t);

        (void) snprintf(new, sizeof(new), "%s.new", path);
        copy_file(target(), new);
        assert_ok(rename(new, path));
        expect_notice(&t, "replaced or removed", (uint32_t) index);
        assert_ok(t.backend->ops->remove(t.backend, (uint32_t) index, NULL, NULL));
        assert_int_equal(count_lines(), 1);
        tracefs_finish(&t);
        assert_ok(unlink(path));
}

/* A daemon that dies: what it set is found, used on or removed, and what it did not read is reported. */
static void test_crash(void **state) {
        static const char *const other[] = { "Start", "target_two", "Stop", "target_one" };
        _cleanup_free_ char *error = NULL;
        pid_t child;
        Tracefs t;
        int status, index;

        tracefs_start(&t, "v3");
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                tracefs_make_backend(&t);
                (void) add(&t, "5ms");
                (void) tracefs_add(&t,
                                   (const char *[]){ "Executable", target(), other[0], other[1],
                                                     other[2], other[3], "BudgetSec", "6ms", NULL },
                                   0, 0, &error);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_true(is_enabled());
        assert_int_equal(count_lines(), 3);
        raise_violation(getpid(), "running", BUDGET, 9000000, 0, 0);

        assert_int_equal(backend_kernel_ops.probe(&error), 1);
        tracefs_make_backend(&t);
        index = add(&t, "5ms");
        assert_int_equal(count_lines(), 3);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        assert_int_equal(t.reports[0].backend_index, index);
        expect_notice(&t, "trace instance", BACKEND_NO_INDEX);
        expect_notice(&t, "Removed 1 bindings", BACKEND_NO_INDEX);
        assert_int_equal(count_lines(), 2);
        assert_int_equal(tracefs_threshold(1), BUDGET);
        tracefs_finish(&t);
}

/* More than the buffers hold: what is missing is counted, to the event. */
static void test_loss(void **state) {
        const size_t n = 20000;
        uint64_t lost;
        Tracefs t;

        begin(&t, "v3");
        add(&t, "5ms");
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

        begin(&t, "v3");
        add(&t, "5ms");
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
                cmocka_unit_test(test_mounted_elsewhere),
                cmocka_unit_test(test_not_mounted),
                cmocka_unit_test(test_finding),
                cmocka_unit_test(test_contradiction),
                cmocka_unit_test(test_not_ready),
                cmocka_unit_test(test_add_and_remove),
                cmocka_unit_test(test_microseconds),
                cmocka_unit_test(test_enabled_before),
                cmocka_unit_test(test_hearing),
                cmocka_unit_test(test_which_binding),
                cmocka_unit_test(test_no_violation),
                cmocka_unit_test(test_labels),
                cmocka_unit_test(test_confinement),
                cmocka_unit_test(test_unknown_task),
                cmocka_unit_test(test_set_budget),
                cmocka_unit_test(test_removed_at_once),
                cmocka_unit_test(test_cannot),
                cmocka_unit_test(test_function),
                cmocka_unit_test(test_foreign),
                cmocka_unit_test(test_interference),
                cmocka_unit_test(test_removed_by_hand),
                cmocka_unit_test(test_given_up),
                cmocka_unit_test(test_panic),
                cmocka_unit_test(test_switched_off),
                cmocka_unit_test(test_wanted_by_others),
                cmocka_unit_test(test_replaced_file),
                cmocka_unit_test(test_crash),
                cmocka_unit_test(test_loss),
                cmocka_unit_test(test_flood),
        };

        cmocka_set_test_filter(getenv("TLOB_TEST_FILTER"));
        return cmocka_run_group_tests(tests, tracefs_setup_namespace, tracefs_teardown_namespace);
}
