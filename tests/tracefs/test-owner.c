/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From v5 on, a thread belongs to the binding that first started it. Whatever the monitor's
 * bindings are, each one that the back end took measures the threads that run it.
 */

#include "test.h"
#include "tracefs.h"

#define MONITOR "rv/monitors/tlob/monitor"

static int add(Tracefs *t, const char *file, const char *start, const char *stop,
               char **ret_error) {
        return tracefs_add(t,
                           (const char *[]) { "Executable", file, "Start", start, "Stop", stop,
                                              "BudgetSec", "5ms", NULL },
                           0, 0, ret_error);
}

static int add_ok(Tracefs *t, const char *file, const char *start, const char *stop) {
        _cleanup_free_ char *error = NULL;
        int index = add(t, file, start, stop, &error);

        if (index < 0)
                fail_msg("%s", error);
        return index;
}

/* Another user's binding of the target. */
static void add_foreign(const char *file, const char *start) {
        _cleanup_free_ char *line = NULL;

        assert_true(asprintf(&line, "p %s:%s 0x48 threshold=9000000", file, start) > 0);
        assert_ok(tracefs_write(MONITOR, line));
}

static void remove_foreign(const char *file, const char *start) {
        _cleanup_free_ char *line = NULL;

        assert_true(asprintf(&line, "-%s:%s", file, start) > 0);
        assert_ok(tracefs_write(MONITOR, line));
}

/* A thread that runs one after the other; the first line of the monitor is someone else's. */
static void two_of_a_program(const char *dialect, bool one_only) {
        _cleanup_free_ char *error = NULL;
        int first, second;
        Tracefs t;

        tracefs_begin(&t, dialect);
        first = add_ok(&t, tracefs_target(), "target_one", "target_two");
        second = add(&t, tracefs_target(), "target_two", "target_one", &error);
        tracefs_overrun(getpid(), 1);
        if (second >= 0)
                tracefs_overrun(getpid(), 2);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1 + (second >= 0));
        assert_int_equal(t.reports[0].backend_index, first);

        assert_int_equal(second < 0, one_only);
        assert_int_equal(tracefs_count_lines(), one_only ? 2 : 3);
        assert_true(!one_only || strstr(error, tracefs_target()));
        tracefs_finish(&t);
}

static void test_two_of_a_program(void **state) {
        two_of_a_program("v3", false);
        two_of_a_program("v4", false);
        two_of_a_program("v5", true);
}

static void test_other_programs(void **state) {
        char copy[] = "/tmp/tlob-owner-XXXXXX";
        Tracefs t;

        tracefs_copy_target(copy);
        tracefs_begin(&t, "v5");
        (void) add_ok(&t, tracefs_target(), "target_one", "target_two");
        (void) add_ok(&t, copy, "target_one", "target_two");
        assert_int_equal(tracefs_count_lines(), 3);
        tracefs_finish(&t);
        assert_ok(unlink(copy));
}

/* Any thread may run a library, of whatever program. */
static void test_library(void **state) {
        char libc[] = "/tmp/tlob-owner-XXXXXX";
        _cleanup_free_ char *error = NULL;
        Tracefs t;

        tracefs_copy_library(libc);
        tracefs_begin(&t, "v5");
        assert_int_equal(add(&t, libc, "getenv", "setenv", &error), -EOPNOTSUPP);
        assert_non_null(strstr(error, "/test-owner")); /* of someone else, on this program */
        tracefs_finish(&t);
        assert_ok(unlink(libc));
}

static void test_foreign_before(void **state) {
        _cleanup_free_ char *error = NULL;
        Tracefs t;

        tracefs_begin(&t, "v5");
        add_foreign(tracefs_target(), "0x40");
        assert_int_equal(add(&t, tracefs_target(), "target_one", "target_two", &error),
                         -EOPNOTSUPP);
        assert_non_null(strstr(error, tracefs_target()));
        remove_foreign(tracefs_target(), "0x40");
        (void) add_ok(&t, tracefs_target(), "target_one", "target_two");
        tracefs_finish(&t);
}

/* Its file is the one that it was set on, whatever is in its place. */
static void test_foreign_replaced(void **state) {
        char copy[] = "/tmp/tlob-owner-XXXXXX", moved[64];
        Tracefs t;

        tracefs_copy_target(copy);
        (void) snprintf(moved, sizeof(moved), "%s.moved", copy);
        tracefs_begin(&t, "v5");
        add_foreign(copy, "0x40");
        (void) add_ok(&t, tracefs_target(), "target_one", "target_two");
        tracefs_collect(&t);
        assert_ok(rename(copy, moved));
        add_foreign(moved, "0x44");
        tracefs_wait(&t);
        assert_int_equal(t.n_notices, 0);
        remove_foreign(moved, "0x40");
        remove_foreign(moved, "0x44");
        tracefs_finish(&t);
        assert_ok(unlink(moved));
}

/* Threads that it starts first from now on will not be ours: the manager is advised, once. */
static void test_foreign_later(void **state) {
        uint32_t index;
        Tracefs t;

        tracefs_begin(&t, "v5");
        index = (uint32_t) add_ok(&t, tracefs_target(), "target_one", "target_two");
        tracefs_collect(&t);
        add_foreign(tracefs_target(), "0x40");
        tracefs_expect_notice(&t, "belongs to the binding that it runs first", index);
        assert_true(t.notices[t.n_notices - 1].is_advice);
        tracefs_assert_told(&t, "belongs to the binding that it runs first");
        tracefs_forget(&t);

        add_foreign(tracefs_target(), "0x44");
        tracefs_wait(&t);
        assert_int_equal(t.n_notices, 0);
        remove_foreign(tracefs_target(), "0x40");
        remove_foreign(tracefs_target(), "0x44");
        tracefs_finish(&t);
}

/* It is measured, whatever became of its thread before. */
static void expect_measured(Tracefs *t, size_t line, int index) {
        tracefs_forget(t);
        tracefs_overrun(getpid(), line);
        for (int i = 0; i < 5 && t->n_reports == 0; i++)
                tracefs_wait(t);
        assert_int_equal(t->n_reports, 1);
        assert_int_equal(t->reports[0].backend_index, index);
}

/* Removed and set again while a window of its thread is open. */
static void test_set_again(void **state) {
        char copy[] = "/tmp/tlob-owner-XXXXXX";
        int index;
        Tracefs t;

        tracefs_copy_target(copy);
        tracefs_begin(&t, "v5");
        index = add_ok(&t, tracefs_target(), "target_one", "target_two");
        assert_ok(tracefs_act("start", getpid(), 1));
        assert_ok(t.backend->ops->remove(t.backend, (uint32_t) index, NULL, NULL));
        tracefs_expect_lines(&t, 1);
        index = add_ok(&t, tracefs_target(), "target_one", "target_two");
        expect_measured(&t, 1, index);
        tracefs_assert_told(&t, "1 resets of the monitor");

        /* What is on another program needs no reset. */
        (void) add_ok(&t, copy, "target_one", "target_two");
        tracefs_assert_told(&t, "1 resets of the monitor");
        tracefs_finish(&t);
        assert_ok(unlink(copy));
}

/* The same, by another hand. */
static void test_removed_by_hand(void **state) {
        _cleanup_free_ char *text = NULL;
        char *line, *end;
        Tracefs t;
        int index;

        tracefs_begin(&t, "v5");
        index = add_ok(&t, tracefs_target(), "target_one", "target_two");
        tracefs_collect(&t);
        assert_ok(tracefs_act("start", getpid(), 1));
        text = tracefs_read(MONITOR);
        line = strstr(text, "\np ") + 2;
        *line = '-';
        end = strchr(line, ' ');
        *end = '\0';
        assert_ok(tracefs_write(MONITOR, line));
        tracefs_expect_notice(&t, "sets them again", BACKEND_NO_INDEX);
        expect_measured(&t, 1, index);
        tracefs_finish(&t);
}

/* A thread that another's binding left behind, in a binding that has to stay. */
static void test_foreign_gone(void **state) {
        int index;
        Tracefs t;

        tracefs_begin(&t, "v5");
        index = add_ok(&t, tracefs_target(), "target_one", "target_two");
        add_foreign(tracefs_target(), "0x40");
        tracefs_wait(&t);
        assert_ok(tracefs_act("start", getpid(), 2));
        assert_int_equal(tracefs_act("start", getpid(), 1), -EALREADY);
        remove_foreign(tracefs_target(), "0x40");
        tracefs_wait(&t);
        expect_measured(&t, 1, index);
        tracefs_finish(&t);
}

/* Of a daemon that is restarted, while someone else has the monitor switched on. */
static void test_restart(void **state) {
        Tracefs t;

        tracefs_start(&t, "v5");
        assert_ok(tracefs_write("rv/monitors/tlob/enable", "1"));
        tracefs_take_stock(&t);
        tracefs_make_backend(&t);
        (void) add_ok(&t, tracefs_target(), "target_one", "target_two");
        assert_ok(tracefs_act("start", getpid(), 1));
        t.backend = t.backend->ops->free(t.backend);
        assert_true(tracefs_is_enabled());

        tracefs_make_backend(&t);
        expect_measured(&t, 1, add_ok(&t, tracefs_target(), "target_one", "target_two"));
        tracefs_finish(&t);
}

/* The budget is in force, and only the binding that nobody can set again is lost, which is told. */
static void test_set_budget(void **state) {
        uint64_t budget[TLOB_N_BUDGETS] = { 7000000, BUDGET_NONE, BUDGET_NONE, BUDGET_NONE,
                                            BUDGET_NONE };
        char foreign[] = "/tmp/tlob-owner-XXXXXX", copy[] = "/tmp/tlob-owner-XXXXXX";
        int index, other;
        Tracefs t;

        tracefs_copy_target(foreign);
        tracefs_copy_target(copy);
        tracefs_begin(&t, "v5");
        index = add_ok(&t, tracefs_target(), "target_one", "target_two");
        add_foreign(foreign, "0x40");
        other = add_ok(&t, copy, "target_one", "target_two");
        tracefs_collect(&t);
        assert_ok(unlink(foreign));
        assert_ok(t.backend->ops->set_budget(t.backend, (uint32_t) index, budget));

        assert_true(tracefs_is_enabled());
        assert_int_equal(tracefs_count_lines(), 3); /* with the one that was there before */
        tracefs_expect_notice(&t, foreign, BACKEND_NO_INDEX);
        tracefs_collect(&t);
        for (size_t i = 0; i < t.n_notices; i++)
                assert_null(strstr(t.notices[i].text, "Someone"));
        expect_measured(&t, 1, other);
        tracefs_finish(&t);
        assert_ok(unlink(copy));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_two_of_a_program), cmocka_unit_test(test_other_programs),
                cmocka_unit_test(test_library),          cmocka_unit_test(test_foreign_before),
                cmocka_unit_test(test_foreign_replaced), cmocka_unit_test(test_foreign_later),
                cmocka_unit_test(test_set_again),        cmocka_unit_test(test_removed_by_hand),
                cmocka_unit_test(test_foreign_gone),     cmocka_unit_test(test_restart),
                cmocka_unit_test(test_set_budget),
        };

        cmocka_set_test_filter(getenv("TLOB_TEST_FILTER"));
        return cmocka_run_group_tests(tests, tracefs_setup_namespace, tracefs_teardown_namespace);
}
