/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What is written to the monitor: bindings that come, change their budget and go, and those that it
 * cannot express. In the end it is as it was found.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "kernel/tracing.h"
#include "test.h"
#include "tracefs.h"

#define MONITOR "rv/monitors/tlob/monitor"
#define ENABLE  "rv/monitors/tlob/enable"
#define BUDGET  UINT64_C(5000000)

static void test_add_and_remove(void **state) {
        static const char *const dialects[] = { "v2", "v3", "v4", "v5" };

        for (size_t i = 0; i < ELEMENTSOF(dialects); i++) {
                uint64_t unit = streq(dialects[i], "v2") ? 1000 : 1;
                _cleanup_free_ char *text = NULL, *path = realpath(tracefs_target(), NULL);
                Statistics final;
                Tracefs t;
                int index;

                tracefs_begin(&t, dialects[i]);
                assert_false(tracefs_is_enabled());
                index = tracefs_add_marks(&t, "5ms");
                assert_true(tracefs_is_enabled());
                assert_int_equal(tracefs_threshold(1), BUDGET / unit);
                text = tracefs_read(MONITOR);
                assert_non_null(strstr(text, path));

                assert_ok(t.backend->ops->remove(t.backend, (uint32_t) index, &final, NULL));
                tracefs_expect_lines(&t, 1);
                assert_int_equal(final.counters.violations, 0);
                assert_true(final.counters.starts == STATISTIC_UNKNOWN);
                tracefs_finish(&t);
        }
}

/* Budgets that are no whole microseconds: rounded up, never down. */
static void test_microseconds(void **state) {
        Tracefs t;

        tracefs_begin(&t, "v2");
        tracefs_add_marks(&t, "1500ns");
        assert_int_equal(tracefs_threshold(1), 2);
        tracefs_finish(&t);
}

static void test_enabled_before(void **state) {
        Tracefs t;

        tracefs_start(&t, "v3");
        assert_ok(tracefs_write(ENABLE, "1"));
        tracefs_take_stock(&t);
        tracefs_make_backend(&t);
        tracefs_add_marks(&t, "5ms");
        tracefs_finish(&t);
}

static void test_set_budget(void **state) {
        static const char *const dialects[] = { "v2", "v3", "v5" };

        for (size_t i = 0; i < ELEMENTSOF(dialects); i++) {
                uint64_t budget[TLOB_N_BUDGETS] = { 7000000, BUDGET_NONE, BUDGET_NONE, BUDGET_NONE,
                                                    BUDGET_NONE };
                uint64_t unit = streq(dialects[i], "v2") ? 1000 : 1;
                _cleanup_free_ char *text = NULL;
                uint32_t index;
                Tracefs t;

                tracefs_begin(&t, dialects[i]);
                index = (uint32_t) tracefs_add_marks(&t, "5ms");
                assert_ok(t.backend->ops->set_budget(t.backend, index, budget));
                assert_true(tracefs_is_enabled());
                assert_int_equal(tracefs_count_lines(), 2);
                text = tracefs_read(MONITOR);
                assert_null(strstr(text, "threshold=5000"));

                /*
                 * A window that was open then has the old threshold: its stop may have been missed.
                 */
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

        tracefs_begin(&t, "v3");
        index = (uint32_t) tracefs_add_marks(&t, "5ms");
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

/* The monitor takes its time to remove a binding: nobody waits for that but who wants its place. */
static void test_slow_removal(void **state) {
        const uint64_t removal_ns = 500000000;
        uint64_t begin;
        uint32_t index;
        Tracefs t;

        assert_ok(setenv("TLOB_STANDIN_REMOVE_USEC", "500000", true));
        tracefs_begin(&t, "v3");
        index = (uint32_t) tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);

        begin = now_ns();
        assert_ok(t.backend->ops->remove(t.backend, index, NULL, NULL));
        tracefs_collect(&t);
        assert_true(now_ns() - begin < removal_ns);
        tracefs_expect_lines(&t, 1);
        assert_true(now_ns() - begin >= removal_ns);

        /* The same place again, while the old one is on its way out. */
        index = (uint32_t) tracefs_add_marks(&t, "5ms");
        assert_ok(t.backend->ops->remove(t.backend, index, NULL, NULL));
        tracefs_collect(&t);
        index = (uint32_t) tracefs_add_marks(&t, "6ms");
        assert_int_equal(tracefs_count_lines(), 2);
        assert_int_equal(tracefs_threshold(1), 6000000);

        /* In the end, what is left to do is done. */
        assert_ok(t.backend->ops->remove(t.backend, index, NULL, NULL));
        assert_ok(unsetenv("TLOB_STANDIN_REMOVE_USEC"));
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
                { { "Executable", "%t", "Function", "target_one", "BudgetSec", "5ms", "Unit",
                    "x@.service" },
                  "none of the instances of x@.service" },
        };
        Tracefs t;

        tracefs_begin(&t, "v3");
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *error = NULL;
                const char *keys[ELEMENTSOF(cases[i].keys)];

                memcpy(keys, cases[i].keys, sizeof(keys));
                keys[1] = tracefs_target();
                assert_int_equal(tracefs_add(&t, keys, 0, 0, &error), -EOPNOTSUPP);
                assert_non_null(strstr(error, cases[i].said));
        }
        assert_int_equal(tracefs_count_lines(), 1);
        tracefs_finish(&t);
}

/* A process with a mount namespace of its own, in which a copy of the target is at its path. */
static pid_t start_with_copy(const char *copy) {
        pid_t child;
        int done[2];
        char byte;

        assert_ok(pipe(done));
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (unshare(CLONE_NEWNS) < 0 ||
                    mount(copy, tracefs_target(), NULL, MS_BIND, NULL) < 0 ||
                    write(done[1], "", 1) != 1)
                        _exit(EXIT_FAILURE);
                for (;;)
                        (void) pause();
        }
        (void) close(done[1]);
        assert_int_equal(read(done[0], &byte, 1), 1);
        (void) close(done[0]);
        return child;
}

/*
 * By its path, the monitor finds another file than that of a unit with files of its own: that is
 * the one whose code would get the probes.
 */
static void test_in_another_namespace(void **state) {
        static const char *const dialects[] = { "v3", "v4", "v5" };
        char copy[] = "/tmp/tlob-tracefs-XXXXXX";
        pid_t child;

        tracefs_copy_target(copy);
        child = start_with_copy(copy);
        for (size_t i = 0; i < ELEMENTSOF(dialects); i++) {
                _cleanup_free_ char *error = NULL, *path = realpath(tracefs_target(), NULL);
                char inside[4200];
                Tracefs t;

                (void) snprintf(inside, sizeof(inside), "/proc/%i/root%s", (int) child, path);
                tracefs_begin(&t, dialects[i]);
                assert_int_equal(tracefs_add_marks_on(&t, inside, "5ms", &error), -EOPNOTSUPP);
                assert_non_null(strstr(error, "tlobd finds another one, or none"));
                assert_int_equal(tracefs_count_lines(), 1);
                tracefs_finish(&t);
        }
        (void) kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_ok(unlink(copy));
}

/* The return of a function: its one RET. */
static void test_function(void **state) {
        _cleanup_free_ char *error = NULL, *text = NULL;
        uint64_t start, stop;
        Tracefs t;

        tracefs_begin(&t, "v3");
        if (tracefs_add(&t,
                        (const char *[]) { "Executable", tracefs_target(), "Function", "target_one",
                                           "BudgetSec", "5ms", NULL },
                        0, 0, &error) < 0)
                fail_msg("%s", error);
        text = tracefs_read(MONITOR);
        assert_int_equal(sscanf(strrchr(text, ':'), ":0x%" SCNx64 " 0x%" SCNx64, &start, &stop), 2);
        assert_true(stop > start);
        {
                _cleanup_close_ int fd = open(tracefs_target(), O_RDONLY | O_CLOEXEC);
                uint8_t byte;

                assert_int_equal(pread(fd, &byte, 1, (off_t) stop), 1);
                assert_int_equal(byte, 0xc3);
        }
        tracefs_finish(&t);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_add_and_remove),
                cmocka_unit_test(test_microseconds),
                cmocka_unit_test(test_enabled_before),
                cmocka_unit_test(test_set_budget),
                cmocka_unit_test(test_removed_at_once),
                cmocka_unit_test(test_slow_removal),
                cmocka_unit_test(test_cannot),
                cmocka_unit_test(test_function),
                cmocka_unit_test(test_in_another_namespace),
        };

        cmocka_set_test_filter(getenv("TLOB_TEST_FILTER"));
        return cmocka_run_group_tests(tests, tracefs_setup_namespace, tracefs_teardown_namespace);
}
