/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* OnViolation=: what systemd is asked to start, and when it is not. */

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake-backend.h"
#include "fake-systemd.h"
#include "fixture.h"
#include "test.h"
#include "tlob-bus.h"

static void add(Fixture *f, const char *name, const char *unit) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error,
                               NULL, "sa{sv}t", name, 4, "Executable", "s", "libc.so.6", "Function",
                               "s", "fsync", "BudgetSec", "s", "5ms", "OnViolation", "s", unit,
                               UINT64_C(0)));
}

/* The window of that number, of the binding that was added as that one, is over its budget. */
static void violate(Fixture *f, uint32_t index, uint64_t id, uint64_t time_ns) {
        fake_report(&(Report) {
                .type = REPORT_VIOLATION,
                .backend_index = index,
                .id = id,
                .time_ns = time_ns,
                .elapsed_ns = 6000000,
                .pid = (uint32_t) getpid(),
                .tid = (uint32_t) getpid(),
                .comm = "a \"$(b)` c",
        });
        fixture_run(f);
}

static void assert_counts(Fixture *f, const char *name, uint64_t started, uint64_t skipped) {
        const Binding *binding = manager_find_binding(f->manager, name, NULL);

        assert_non_null(binding);
        assert_int_equal(binding->action.n_started, started);
        assert_int_equal(binding->action.n_skipped, skipped);
}

static void job_ends(unsigned job, const char *result) {
        char path[32];

        (void) snprintf(path, sizeof(path), "/job/%u", job);
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "JobRemoved", "uoss", job, path, "x.service",
                    result);
        fixture_run(systemd.fixture);
}

/* Time passes, for the limit of that binding. */
static void let_pass(Fixture *f, const char *name) {
        Binding *binding = manager_find_binding(f->manager, name, NULL);

        binding->action.last_ns -= binding->on_violation_interval_ns;
}

static void assert_file_has(const Fixture *f, const char *id, const char *line) {
        char path[128], buf[256];
        bool found = false;
        FILE *file;

        (void) snprintf(path, sizeof(path), "%s/violations/%s", f->directories[1], id);
        file = fopen(path, "re");
        assert_non_null(file);
        while (fgets(buf, sizeof(buf), file))
                found |= streq(buf, line);
        (void) fclose(file);
        if (!found)
                fail_msg("no line %s in %s", line, path);
}

static void test_an_instance_for_a_window(void **state) {
        Fixture *f = *state;

        add(f, "sync", "capture@.service");
        violate(f, 0, 4711, now_ns());
        assert_int_equal(systemd.n_started, 1);
        assert_string_equal(systemd.started, "capture@4711.service");
        assert_file_has(f, "4711", "TLOB_BINDING=\"sync\"\n");
        assert_file_has(f, "4711", "TLOB_WINDOW_ID=\"4711\"\n");
        assert_file_has(f, "4711", "TLOB_COMM=\"a \\\"\\$(b)\\` c\"\n");
        assert_counts(f, "sync", 1, 0);
}

static void test_a_service_of_its_own(void **state) {
        Fixture *f = *state;

        add(f, "sync", "dump.service");
        violate(f, 0, 1, now_ns());
        assert_string_equal(systemd.started, "dump.service");
}

static void test_not_too_often(void **state) {
        Fixture *f = *state;

        add(f, "sync", "capture@.service");
        for (uint64_t id = 1; id <= 5; id++) {
                violate(f, 0, id, now_ns());
                job_ends(1, "done");
        }
        assert_int_equal(systemd.n_started, 1);
        assert_counts(f, "sync", 1, 4);
        let_pass(f, "sync");
        violate(f, 0, 6, now_ns());
        assert_string_equal(systemd.started, "capture@6.service");
        assert_counts(f, "sync", 2, 4);
}

static void test_one_at_a_time(void **state) {
        Fixture *f = *state;

        add(f, "sync", "capture@.service");
        violate(f, 0, 1, now_ns());
        let_pass(f, "sync");
        violate(f, 0, 2, now_ns());
        assert_counts(f, "sync", 1, 1);
        /* That of somebody else has ended. */
        job_ends(7, "done");
        violate(f, 0, 3, now_ns());
        assert_counts(f, "sync", 1, 2);
        job_ends(1, "failed");
        violate(f, 0, 4, now_ns());
        assert_string_equal(systemd.started, "capture@4.service");
        assert_counts(f, "sync", 2, 2);
}

/* "b0", "b1" and so on. */
static void add_many(Fixture *f, unsigned n, const char *unit) {
        char name[8];

        for (unsigned i = 0; i < n; i++) {
                (void) snprintf(name, sizeof(name), "b%u", i);
                add(f, name, unit);
        }
}

static void test_not_all_at_once(void **state) {
        Fixture *f = *state;

        add_many(f, 9, "capture@.service");
        for (uint32_t i = 0; i < 9; i++)
                violate(f, i, i + 1, now_ns());
        assert_int_equal(systemd.n_started, 8);
        assert_counts(f, "b8", 0, 1);
        job_ends(3, "skipped");
        violate(f, 8, 10, now_ns());
        assert_counts(f, "b8", 1, 1);
}

/* All ask for one service, whose job is the same then. */
static void test_one_for_all(void **state) {
        Fixture *f = *state;
        char name[8];

        add_many(f, 8, "dump.service");
        for (uint64_t round = 1; round <= 3; round++) {
                for (uint32_t i = 0; i < 8; i++)
                        violate(f, i, 10 * round + i, now_ns());
                job_ends(1, "done");
                for (uint32_t i = 0; i < 8; i++) {
                        (void) snprintf(name, sizeof(name), "b%u", i);
                        assert_counts(f, name, round, 0);
                        let_pass(f, name);
                }
        }
}

/* systemd did not answer in time, and does it later. */
static void test_a_late_start(void **state) {
        Fixture *f = *state;

        add(f, "sync", "capture@.service");
        systemd.starts_late = true;
        violate(f, 0, 1, now_ns());
        let_pass(f, "sync");
        violate(f, 0, 2, now_ns());
        assert_counts(f, "sync", 1, 1);
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "JobRemoved", "uoss", 7, "/job/7",
                    "capture@1.service", "done");
        fixture_run(f);
        violate(f, 0, 3, now_ns());
        assert_counts(f, "sync", 2, 1);
}

static void test_systemd_begins_anew(void **state) {
        Fixture *f = *state;

        add(f, "sync", "capture@.service");
        violate(f, 0, 1, now_ns());
        let_pass(f, "sync");
        systemd_comes_back();
        violate(f, 0, 2, now_ns());
        assert_counts(f, "sync", 2, 0);
}

static void test_what_is_over(void **state) {
        Fixture *f = *state;

        add(f, "sync", "capture@.service");
        violate(f, 0, 1, now_ns() - 11 * UINT64_C(1000000000));
        assert_int_equal(systemd.n_started, 0);
        assert_counts(f, "sync", 0, 1);
}

static void test_a_unit_that_is_not_there(void **state) {
        Fixture *f = *state;

        systemd.starts_nothing = true;
        add(f, "sync", "nothing@.service");
        violate(f, 0, 1, now_ns());
        assert_counts(f, "sync", 1, 0);
        /* It is not asked for again at once. */
        violate(f, 0, 2, now_ns());
        assert_counts(f, "sync", 1, 1);
        let_pass(f, "sync");
        violate(f, 0, 3, now_ns());
        assert_counts(f, "sync", 2, 1);
}

static void test_the_binding_goes(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;

        add(f, "sync", "capture@.service");
        violate(f, 0, 1, now_ns());
        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "RemoveBinding",
                               &error, NULL, "st", "sync", UINT64_C(0)));
        job_ends(1, "failed");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_systemd_setup, fixture_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_an_instance_for_a_window),
                TEST(test_a_service_of_its_own),
                TEST(test_not_too_often),
                TEST(test_one_at_a_time),
                TEST(test_not_all_at_once),
                TEST(test_what_is_over),
                TEST(test_a_unit_that_is_not_there),
                TEST(test_the_binding_goes),
                TEST(test_one_for_all),
                TEST(test_a_late_start),
                TEST(test_systemd_begins_anew),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
