/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What others do to the monitor, and what a daemon that dies leaves in it: noticed, repaired or
 * told, and counted.
 */

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "test.h"
#include "tracefs.h"

#define MONITOR "rv/monitors/tlob/monitor"
#define ENABLE  "rv/monitors/tlob/enable"
#define BUDGET  UINT64_C(5000000)

static void test_foreign(void **state) {
        _cleanup_free_ char *error = NULL, *line = NULL, *all = NULL;
        Tracefs t;
        int index;

        tracefs_begin(&t, "v3");
        index = tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);
        tracefs_assert_told(&t, "someone else: p ");

        /* The same place, by someone else. */
        all = tracefs_read(MONITOR);
        line = strdup(strchr(all, '\n') + 1);
        assert_ok(t.backend->ops->remove(t.backend, (uint32_t) index, NULL, NULL));
        tracefs_expect_lines(&t, 1);
        assert_ok(tracefs_write(MONITOR, line));
        assert_int_equal(tracefs_add_marks_on(&t, tracefs_target(), "5ms", &error), -EEXIST);
        assert_non_null(strstr(error, "There is a binding in the kernel's monitor already"));

        *strrchr(line, ' ') = '\0'; /* the threshold */
        *strrchr(line, ' ') = '\0'; /* the stop */
        memmove(line + 1, line + 2, strlen(line + 1));
        line[0] = '-';
        assert_ok(tracefs_write(MONITOR, line));
        tracefs_finish(&t);
}

static void test_interference(void **state) {
        _cleanup_free_ char *poison = NULL;
        Tracefs t;
        char *end;

        tracefs_begin(&t, "v3");
        poison = tracefs_read(MONITOR);
        tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);

        assert_ok(tracefs_write(ENABLE, "0"));
        tracefs_expect_notice(&t, "switched off the kernel's tlob monitor and 1 bindings",
                              BACKEND_NO_INDEX);
        assert_true(tracefs_is_enabled());
        assert_int_equal(tracefs_threshold(0), BUDGET);

        /* As "echo >enabled_monitors" does. */
        tracefs_forget(&t);
        {
                _cleanup_close_ int fd = open("/sys/kernel/tracing/rv/enabled_monitors",
                                              O_WRONLY | O_TRUNC | O_CLOEXEC);

                assert_true(fd >= 0);
        }
        tracefs_expect_notice(&t, "switched off", BACKEND_NO_INDEX);
        assert_true(tracefs_is_enabled());
        assert_int_equal(tracefs_threshold(0), BUDGET);

        /* Another reactor: the monitor stays enabled, and forgets its bindings. */
        tracefs_forget(&t);
        assert_ok(tracefs_write("rv/monitors/tlob/reactors", "nop"));
        tracefs_expect_notice(&t, "reset the kernel's tlob monitor and 1 bindings",
                              BACKEND_NO_INDEX);
        assert_int_equal(tracefs_threshold(0), BUDGET);

        raise_violation(getpid(), "running", BUDGET, 9000000, 0, 0);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        tracefs_assert_told(&t, "3 repairs");

        /* What was someone else's is as it was: that was lost by their doing, not ours. */
        t.backend = t.backend->ops->free(t.backend);
        assert_false(tracefs_is_enabled());
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

        tracefs_begin(&t, "v3");
        tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);
        text = tracefs_read(MONITOR);
        (void) snprintf(line, sizeof(line), "-%s", strchr(text, '\n') + 3);
        *strchr(line, ' ') = '\0';
        assert_ok(tracefs_write(MONITOR, line));
        tracefs_expect_notice(&t, "reset", BACKEND_NO_INDEX);
        assert_int_equal(tracefs_count_lines(), 2);
        tracefs_finish(&t);
}

/* The occasion is past when it can be repaired. */
static void test_repair_that_fails(void **state) {
        _cleanup_free_ char *poison = NULL;
        struct rlimit limit, none;
        Tracefs t;

        tracefs_begin(&t, "v3");
        poison = tracefs_read(MONITOR);
        *strchr(poison, '\n') = '\0';
        tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);
        assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
        none = limit;
        none.rlim_cur = 3;
        assert_ok(tracefs_write(ENABLE, "0"));
        assert_ok(setrlimit(RLIMIT_NOFILE, &none));
        assert_true(t.backend->ops->dispatch(t.backend, NULL, NULL) < 0);
        assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
        assert_false(tracefs_is_enabled());
        tracefs_expect_notice(&t, "switched off the kernel's tlob monitor and 1 bindings",
                              BACKEND_NO_INDEX);
        assert_true(tracefs_is_enabled());
        t.backend = t.backend->ops->free(t.backend);
        assert_ok(tracefs_write(MONITOR, poison));
        tracefs_finish(&t);
}

/* Who keeps at it wins. */
static void test_given_up(void **state) {
        _cleanup_free_ char *poison = NULL, *error = NULL;
        uint32_t index;
        Tracefs t;

        tracefs_begin(&t, "v3");
        poison = tracefs_read(MONITOR);
        index = (uint32_t) tracefs_add_marks(&t, "5ms");
        for (int i = 0; i < 5; i++) {
                assert_ok(tracefs_write(ENABLE, "0"));
                tracefs_wait(&t);
                assert_true(tracefs_is_enabled());
        }
        assert_ok(tracefs_write(ENABLE, "0"));
        tracefs_expect_notice(&t, "keep removing", index);
        assert_false(tracefs_is_enabled());
        assert_ok(t.backend->ops->remove(t.backend, index, NULL, NULL));
        /* Another back end is to take it. */
        assert_int_equal(tracefs_add_marks_on(&t, tracefs_target(), "5ms", &error), -EBUSY);
        assert_non_null(strstr(error, "keep removing"));

        t.backend = t.backend->ops->free(t.backend);
        *strchr(poison, '\n') = '\0';
        assert_ok(tracefs_write(MONITOR, poison));
        tracefs_finish(&t);
}

static void test_panic(void **state) {
        _cleanup_free_ char *poison = NULL, *error = NULL;
        uint32_t index;
        Tracefs t;

        tracefs_begin(&t, "v3");
        poison = tracefs_read(MONITOR);
        index = (uint32_t) tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);
        assert_ok(tracefs_write("rv/monitors/tlob/reactors", "panic"));
        tracefs_expect_notice(&t, "stop the machine", index);
        assert_ok(t.backend->ops->remove(t.backend, index, NULL, NULL));
        /* Nor is it taken again, as the manager tries to. */
        assert_int_equal(tracefs_add_marks_on(&t, tracefs_target(), "5ms", &error), -EOPNOTSUPP);
        assert_non_null(strstr(error, "stop the machine"));

        t.backend = t.backend->ops->free(t.backend);
        assert_ok(tracefs_write("rv/monitors/tlob/reactors", "printk"));
        *strchr(poison, '\n') = '\0';
        assert_ok(tracefs_write(MONITOR, poison));
        tracefs_finish(&t);
}

static void test_switched_off(void **state) {
        Tracefs t;

        tracefs_begin(&t, "v3");
        tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);
        assert_ok(tracefs_write("rv/monitoring_on", "0"));
        tracefs_expect_notice(&t, "switched all of the kernel's monitors off", BACKEND_NO_INDEX);
        tracefs_assert_told(&t, "monitoring_on is 0");
        assert_ok(tracefs_write("rv/monitoring_on", "1"));
        tracefs_expect_notice(&t, "on again", BACKEND_NO_INDEX);
        assert_false(tracefs_is_told(&t, "monitoring_on is 0"));
        tracefs_finish(&t);
}

/* Someone enables it for themselves: it stays enabled. */
static void test_wanted_by_others(void **state) {
        Tracefs t;

        tracefs_begin(&t, "v3");
        tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);
        assert_ok(tracefs_write(ENABLE, "1"));
        tracefs_wait(&t);
        t.backend = t.backend->ops->free(t.backend);
        assert_true(tracefs_is_enabled());
        assert_int_equal(tracefs_count_lines(), 1);
        tracefs_take_stock(&t);
        tracefs_finish(&t);
}

/* Puts back the binding that was there before, which others have taken away. */
static void put_back(char *before) {
        *strchr(before, '\n') = '\0';
        assert_ok(tracefs_write(MONITOR, before));
}

/* While no unit runs that is to be measured, the monitor is as others want it. */
static void test_not_in_use(void **state) {
        _cleanup_free_ char *poison = NULL, *error = NULL;
        Tracefs t;
        int index;

        tracefs_begin(&t, "v3");
        poison = tracefs_read(MONITOR);
        index = tracefs_add(&t,
                            (const char *[]) { "Executable", tracefs_target(), "Start",
                                               "target_one", "Stop", "target_two", "BudgetSec",
                                               "5ms", "Unit", "tlob-test.service", NULL },
                            0, 0, &error);
        assert_true(index >= 0);
        tracefs_collect(&t);
        assert_ok(tracefs_write(ENABLE, "0"));
        tracefs_expect_notice(&t, "stays so until a unit runs", BACKEND_NO_INDEX);
        assert_false(tracefs_is_enabled());
        assert_ok(tracefs_write(ENABLE, "1"));
        tracefs_wait(&t);
        assert_ok(tracefs_write(ENABLE, "0"));
        tracefs_wait(&t);
        assert_int_equal(t.n_notices, 1);
        assert_false(tracefs_is_enabled());

        assert_ok(t.backend->ops->set_cgroup(t.backend, (uint32_t) index, 1, 1));
        assert_true(tracefs_is_enabled());
        assert_int_equal(tracefs_count_lines(), 1);
        tracefs_expect_notice(&t, "they are in use", BACKEND_NO_INDEX);
        t.backend = t.backend->ops->free(t.backend);
        assert_false(tracefs_is_enabled());
        put_back(poison);
        tracefs_finish(&t);
}

/* In the end it is as they wanted it last: also when that was never seen before the end. */
static void test_wished_last(void **state) {
        _cleanup_free_ char *poison = NULL;
        Tracefs t;

        tracefs_start(&t, "v3");
        poison = tracefs_read(MONITOR);
        assert_ok(tracefs_write(ENABLE, "1"));
        tracefs_make_backend(&t);
        tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);
        assert_ok(tracefs_write(ENABLE, "0"));
        tracefs_expect_notice(&t, "switched off", BACKEND_NO_INDEX);
        assert_true(tracefs_is_enabled());
        t.backend = t.backend->ops->free(t.backend);
        assert_false(tracefs_is_enabled());

        tracefs_make_backend(&t);
        tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);
        assert_ok(tracefs_write(ENABLE, "1"));
        t.backend = t.backend->ops->free(t.backend);
        assert_true(tracefs_is_enabled());
        assert_ok(tracefs_write(ENABLE, "0"));
        put_back(poison);
        tracefs_finish(&t);
}

/* A copy of the target, and a back end with a binding on it. */
static uint32_t begin_with_copy(Tracefs *t, char *path) {
        _cleanup_free_ char *error = NULL;
        int index;

        tracefs_copy_target(path);
        tracefs_begin(t, "v3");
        index = tracefs_add_marks_on(t, path, "5ms", &error);
        assert_true(index >= 0);
        return (uint32_t) index;
}

/* By another file of the same code. */
static void replace(const char *path) {
        char new[] = "/tmp/tlob-tracefs-XXXXXX";

        tracefs_copy_target(new);
        assert_ok(rename(new, path));
}

/* By its path, a binding on a file that was replaced cannot be removed. */
static void test_replaced_file(void **state) {
        char path[] = "/tmp/tlob-tracefs-XXXXXX";
        uint32_t index;
        Tracefs t;

        index = begin_with_copy(&t, path);
        tracefs_collect(&t);
        replace(path);
        tracefs_expect_notice(&t, "replaced or removed", index);
        assert_ok(t.backend->ops->remove(t.backend, index, NULL, NULL));
        tracefs_expect_lines(&t, 1);
        tracefs_finish(&t);
        assert_ok(unlink(path));
}

/* What is to be told of a binding is not told of the next one that has its index. */
static void test_notice_of_another(void **state) {
        char path[] = "/tmp/tlob-tracefs-XXXXXX";
        BackendNotice notice;
        uint32_t index;
        Tracefs t;

        index = begin_with_copy(&t, path);
        tracefs_collect(&t);
        replace(path);
        assert_ok(t.backend->ops->dispatch(t.backend, NULL, NULL));
        assert_ok(t.backend->ops->remove(t.backend, index, NULL, NULL));
        assert_ok(t.backend->ops->dispatch(t.backend, NULL, NULL));
        assert_int_equal(tracefs_add_marks(&t, "5ms"), index);
        while (t.backend->ops->next_notice(t.backend, &notice) > 0) {
                free(notice.text);
                assert_int_not_equal(notice.index, index);
        }
        tracefs_finish(&t);
        assert_ok(unlink(path));
}

/* A line of somebody else's is on the file that it was written for, and on no other. */
static void test_replaced_file_of_others(void **state) {
        char path[] = "/tmp/tlob-tracefs-XXXXXX";
        _cleanup_free_ char *all = NULL;
        uint32_t index;
        Tracefs t;

        index = begin_with_copy(&t, path);
        all = tracefs_read(MONITOR);
        assert_ok(t.backend->ops->remove(t.backend, index, NULL, NULL));
        tracefs_expect_lines(&t, 1);
        assert_ok(tracefs_write(MONITOR, strchr(all, '\n') + 1));
        tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);
        assert_int_equal(tracefs_count_lines(), 3);

        replace(path);
        t.backend = t.backend->ops->free(t.backend);
        assert_int_equal(tracefs_count_lines(), 1);
        tracefs_finish(&t);
        assert_ok(unlink(path));
}

/*
 * A daemon that dies, and a file that is replaced before there is another: what it set is in the
 * old one, and must not come into the new one.
 */
static void test_crash_and_replaced_file(void **state) {
        char path[] = "/tmp/tlob-tracefs-XXXXXX";
        _cleanup_free_ char *error = NULL;
        int status, index;
        pid_t child;
        Tracefs t;

        tracefs_copy_target(path);
        tracefs_start(&t, "v3");
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                tracefs_make_backend(&t);
                _exit(tracefs_add_marks_on(&t, path, "5ms", &error) < 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(tracefs_count_lines(), 2);

        replace(path);
        tracefs_make_backend(&t);
        index = tracefs_add_marks_on(&t, path, "5ms", &error);
        assert_true(index >= 0);
        /* That of the file which is there now is another one. */
        assert_int_equal(tracefs_count_lines(), 3);
        assert_int_not_equal(tracefs_threshold(1), tracefs_threshold(2));
        assert_ok(t.backend->ops->remove(t.backend, (uint32_t) index, NULL, NULL));
        tracefs_collect(&t);
        t.backend = t.backend->ops->free(t.backend);
        assert_int_equal(tracefs_count_lines(), 1);
        tracefs_finish(&t);
        assert_ok(unlink(path));
}

/*
 * A daemon that dies: what it set is found, used on or removed, and what it did not read is
 * reported.
 */
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
                (void) tracefs_add_marks(&t, "5ms");
                (void) tracefs_add(&t,
                                   (const char *[]) { "Executable", tracefs_target(), other[0],
                                                      other[1], other[2], other[3], "BudgetSec",
                                                      "6ms", NULL },
                                   0, 0, &error);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_true(tracefs_is_enabled());
        assert_int_equal(tracefs_count_lines(), 3);
        raise_violation(getpid(), "running", BUDGET, 9000000, 0, 0);

        assert_int_equal(backend_kernel_ops.probe(&error), 1);
        tracefs_make_backend(&t);
        index = tracefs_add_marks(&t, "5ms");
        assert_int_equal(tracefs_count_lines(), 3);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        assert_int_equal(t.reports[0].backend_index, index);
        tracefs_expect_notice(&t, "trace instance", BACKEND_NO_INDEX);
        tracefs_expect_notice(&t, "Removing 1 bindings", BACKEND_NO_INDEX);
        tracefs_expect_lines(&t, 2);
        assert_int_equal(tracefs_threshold(1), BUDGET);

        /* What a window of it that is still open would say is not taken for another binding's. */
        index = tracefs_add(&t,
                            (const char *[]) { "Executable", tracefs_target(), other[0], other[1],
                                               other[2], other[3], "BudgetSec", "6ms", NULL },
                            0, 0, &error);
        assert_true(index >= 0);
        assert_int_equal(tracefs_threshold(2), BUDGET + 1000001);
        tracefs_finish(&t);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_foreign),
                cmocka_unit_test(test_interference),
                cmocka_unit_test(test_removed_by_hand),
                cmocka_unit_test(test_repair_that_fails),
                cmocka_unit_test(test_given_up),
                cmocka_unit_test(test_panic),
                cmocka_unit_test(test_switched_off),
                cmocka_unit_test(test_wanted_by_others),
                cmocka_unit_test(test_not_in_use),
                cmocka_unit_test(test_wished_last),
                cmocka_unit_test(test_replaced_file),
                cmocka_unit_test(test_notice_of_another),
                cmocka_unit_test(test_replaced_file_of_others),
                cmocka_unit_test(test_crash_and_replaced_file),
                cmocka_unit_test(test_crash),
        };

        cmocka_set_test_filter(getenv("TLOB_TEST_FILTER"));
        return cmocka_run_group_tests(tests, tracefs_setup_namespace, tracefs_teardown_namespace);
}
