/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is changed at run time leaves nothing behind that somebody else would find. */

#include <sys/stat.h>

#include "fake-backend.h"
#include "fixture.h"
#include "manager/reports.h"
#include "test.h"
#include "tlob-bus.h"

static int call(Fixture *f, const char *member, sd_bus_error *error, const char *types,
                const char *name, uint64_t n, uint64_t flags) {
        if (types && streq(types, "stt"))
                return fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, member, error,
                                    NULL, types, name, n, flags);
        return fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, member, error, NULL,
                            types, name, flags);
}

static void add(Fixture *f, const char *name, const char *enabled) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error,
                               NULL, "sa{sv}t", name, 4, "Executable", "s", "libc.so.6", "Function",
                               "s", "fsync", "BudgetSec", "s", "5ms", "Enabled", "s", enabled,
                               UINT64_C(0)));
}

static const Binding *get(const Fixture *f, const char *name) {
        const Binding *binding = binding_table_get(manager_bindings(f->manager), name);

        assert_non_null(binding);
        return binding;
}

static void test_a_disabled_binding_measures_nothing(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        unsigned before = fake_calls()->add;
        Fixture *f = *state;

        add(f, "sync", "no");
        assert_int_equal(get(f, "sync")->measurement.state, BINDING_DISABLED);
        assert_int_equal(fake_calls()->add, before);
        assert_ok(call(f, "Reload", &error, NULL, NULL, 0, 0));
        assert_int_equal(get(f, "sync")->measurement.state, BINDING_DISABLED);
        add(f, "more", "yes");
        assert_int_equal(fake_calls()->add, before + 1);
}

static void test_a_budget_goes_with_its_binding(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;

        for (uint64_t flags = 0; flags < 2; flags++) {
                add(f, "sync", "yes");
                assert_ok(call(f, "SetBudget", &error, "stt", "sync", 50000000, flags));
                assert_int_equal(get(f, "sync")->budget_ns[TLOB_BUDGET_TOTAL], 50000000);
                assert_ok(call(f, "RemoveBinding", &error, "st", "sync", 0, 0));
                add(f, "sync", "yes");
                assert_int_equal(get(f, "sync")->budget_ns[TLOB_BUDGET_TOTAL], 5000000);
                assert_ok(call(f, "Reload", &error, NULL, NULL, 0, 0));
                assert_int_equal(get(f, "sync")->budget_ns[TLOB_BUDGET_TOTAL], 5000000);
                assert_ok(call(f, "RemoveBinding", &error, "st", "sync", 0, 0));
        }
}

/* Its directory is there, and cannot be read: nothing is known, so nothing is changed. */
static void test_an_unreadable_directory_changes_nothing(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *path = NULL, *aside = NULL;
        Fixture *f = *state;
        unsigned removed;

        fixture_write(f, 0, "bindings.d/a.conf",
                      "[Binding a]\nExecutable=libc.so.6\nFunction=fsync\nBudgetSec=5ms\n");
        assert_ok(call(f, "Reload", &error, NULL, NULL, 0, 0));
        assert_int_equal(get(f, "a")->measurement.state, BINDING_ACTIVE);
        removed = fake_calls()->remove;

        assert_true(asprintf(&path, "%s/bindings.d", f->directories[0]) > 0);
        assert_true(asprintf(&aside, "%s/aside", f->directories[0]) > 0);
        assert_ok(rename(path, aside));
        assert_ok(symlink("bindings.d", path));
        assert_true(call(f, "Reload", &error, NULL, NULL, 0, 0) < 0);
        assert_non_null(strstr(error.message, "stay as they were"));
        assert_int_equal(get(f, "a")->measurement.state, BINDING_ACTIVE);
        assert_int_equal(fake_calls()->remove, removed);

        sd_bus_error_free(&error);
        assert_ok(unlink(path));
        assert_ok(rename(aside, path));
        assert_ok(call(f, "Reload", &error, NULL, NULL, 0, 0));
        assert_int_equal(get(f, "a")->measurement.state, BINDING_ACTIVE);
}

/* A back end that tells at once what it has found may do so before all bindings are in it again. */
static void test_what_was_found_while_nobody_was_there(void **state) {
        static const Report found = {
                .type = REPORT_VIOLATION,
                .backend_index = 59,
                .id = 7,
                .time_ns = 1000000000,
                .elapsed_ns = 6000000,
                .exceeded = 1,
                .tid = 1,
                .comm = "late",
        };
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(manager_freep) Manager *m = NULL;
        _cleanup_free_ char *text = NULL;
        Fixture *f = *state;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        assert_non_null(out);
        for (unsigned i = 0; i < 60; i++)
                (void) fprintf(
                        out, "[Binding b%u]\nExecutable=libc.so.6\nFunction=fsync\nBudgetSec=5ms\n",
                        i);
        assert_ok(fclose(out));
        fixture_write(f, 0, "bindings.d/many.conf", text);
        fake_leave(&found);
        assert_ok(manager_new(fake_backends, (const char *const *) f->directories, &m));
        assert_true(sd_event_new(&event) >= 0);
        assert_ok(manager_attach_event(m, event));
        assert_ok(manager_probe_backends(m));
        assert_true(manager_reload(m) >= 0);
        while (!manager_is_ready(m) || sd_event_run(event, 0) > 0)
                assert_true(sd_event_run(event, 1000000) >= 0);
        assert_non_null(manager_find_violation(m, 7));
}

static const Violation *report_at(Fixture *f, uint64_t id, uint64_t time_ns) {
        const Report report = {
                .type = REPORT_VIOLATION, .id = id, .time_ns = time_ns, .exceeded = 1, .tid = 1
        };

        fake_report(&report);
        fixture_run(f);
        return manager_find_violation(f->manager, id);
}

/*
 * The daemon before this one has let as many through as it may, and has not said of 30 that it held
 * them back. Since then, the back end has held 800 back.
 */
static void test_what_was_held_back_while_nobody_was_there(void **state) {
        Fixture *f = *state;
        ManagerTotals totals;
        const Violation *violation;

        *fake_limit() = (BindingLimit) {
                .rate = { .count = 20, .begin_ns = 1000000000 },
                .n_suppressed = 120,
                .suppressed = 30,
                .unannounced = 30,
                .seen = 100,
        };
        fake_suppress(900);
        fixture_write(f, 0, "bindings.d/x.conf",
                      "[Binding x]\nExecutable=libc.so.6\nFunction=fsync\nBudgetSec=5ms\n");
        assert_true(manager_reload(f->manager) >= 0);
        fixture_run(f);

        violation = report_at(f, 1, 2000000000);
        assert_true(violation->held_back);
        assert_ok(manager_get_totals(f->manager, &totals));
        assert_int_equal(totals.suppressed, 120 + 1 + 800);

        violation = report_at(f, 2, 20000000000);
        assert_false(violation->held_back);
        assert_int_equal(violation->suppressed, 30 + 1 + 800);

        assert_int_equal(fake_limit()->rate.count, 1);
        assert_int_equal(fake_limit()->n_suppressed, 120 + 1 + 800);
        assert_int_equal(fake_limit()->suppressed, 0);
        assert_int_equal(fake_limit()->unannounced, 30 + 1 + 800);
        assert_int_equal(fake_limit()->seen, 900);

        assert_ok(
                manager_reset_statistics(f->manager, manager_find_binding(f->manager, "x", NULL)));
        assert_int_equal(fake_limit()->n_suppressed, 0);
        assert_int_equal(fake_limit()->seen, 0);
}

/*
 * Before anything was held back here, as the limit of all bindings can do in the back end. It is
 * told at the end of the interval, and by the next report.
 */
static void test_what_only_the_back_end_has_held_back(void **state) {
        Fixture *f = *state;
        ManagerTotals totals;
        const Violation *violation;
        Binding *x;

        fixture_write(f, 0, "bindings.d/x.conf",
                      "[Binding x]\nExecutable=libc.so.6\nFunction=fsync\nBudgetSec=5ms\n");
        assert_true(manager_reload(f->manager) >= 0);
        fixture_run(f);
        x = manager_find_binding(f->manager, "x", NULL);

        violation = report_at(f, 1, 2000000000);
        assert_int_equal(violation->suppressed, 0);
        fake_suppress(79);
        manager_announce_suppressed(f->manager, x);
        assert_int_equal(x->limit.n_suppressed, 79);
        assert_int_equal(x->limit.unannounced, 0);

        fake_suppress(80);
        violation = report_at(f, 2, 20000000000);
        assert_false(violation->held_back);
        assert_int_equal(violation->suppressed, 79 + 80);
        assert_int_equal(x->limit.unannounced, 80);
        assert_ok(manager_get_totals(f->manager, &totals));
        assert_int_equal(totals.suppressed, 79 + 80);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_what_was_found_while_nobody_was_there),
                TEST(test_what_was_held_back_while_nobody_was_there),
                TEST(test_what_only_the_back_end_has_held_back),
                TEST(test_a_disabled_binding_measures_nothing),
                TEST(test_a_budget_goes_with_its_binding),
                TEST(test_an_unreadable_directory_changes_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
