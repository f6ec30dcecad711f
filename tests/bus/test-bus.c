/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The D-Bus interface as a client sees it, over a socket pair, with a back end that is told what to
 * report. The caller is root here or is not: where that matters the test looks at its own uid.
 */

#include <unistd.h>

#include "fake-backend.h"
#include "fixture.h"
#include "test.h"
#include "tlob-bus.h"

#define LIBC "Executable", "s", "libc.so.6", "Function", "s", "fsync"

static int call(Fixture *f, const char *member, sd_bus_error *error, sd_bus_message **ret,
                const char *types, const char *name, uint64_t number, uint64_t flags) {
        if (!types)
                return fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, member, error,
                                    ret, NULL);
        return fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, member, error, ret, types,
                            name, number, flags);
}

static int add(Fixture *f, const char *name, const char *budget, uint64_t flags,
               sd_bus_error *error) {
        return fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", error, NULL,
                            "sa{sv}t", name, 3, LIBC, "BudgetSec", "s", budget, flags);
}

static void assert_refused(int r, sd_bus_error *error, const char *name, const char *part) {
        assert_true(r < 0);
        assert_string_equal(error->name, name);
        assert_non_null(strstr(error->message, part));
        sd_bus_error_free(error);
}

static bool file_exists(Fixture *f, unsigned directory, const char *name) {
        _cleanup_free_ char *path = NULL;

        assert_true(asprintf(&path, "%s/%s", f->directories[directory], name) > 0);
        return access(path, F_OK) == 0;
}

static void get_property(Fixture *f, const char *path, const char *interface, const char *name,
                         const char *type, void *ret) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply = NULL;

        assert_ok(fixture_call(f, path, "org.freedesktop.DBus.Properties", "Get", &error, &reply,
                               "ss", interface, name));
        assert_true(sd_bus_message_read(reply, "v", type, ret) > 0);
        if (*type == 's')
                *(char **) ret = strdup(*(char **) ret);
        sd_bus_message_unref(reply);
}

static void assert_state(Fixture *f, const char *path, const char *expected) {
        _cleanup_free_ char *state = NULL;

        get_property(f, path, TLOB_BUS_BINDING_INTERFACE, "State", "s", &state);
        assert_string_equal(state, expected);
}

static void test_add_and_remove(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;
        uint32_t n;

        assert_ok(add(f, "sync", "5ms", 0, &error));
        assert_true(file_exists(f, 1, "bindings.d/tlobctl-sync.conf"));
        assert_false(file_exists(f, 0, "bindings.d/tlobctl-sync.conf"));
        assert_state(f, TLOB_BUS_BINDING_PREFIX "/sync", "active");
        get_property(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "NActive", "u", &n);
        assert_int_equal(n, 1);

        assert_ok(call(f, "RemoveBinding", &error, NULL, "st", "sync", 0, 0));
        assert_false(file_exists(f, 1, "bindings.d/tlobctl-sync.conf"));
        get_property(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "NBindings", "u", &n);
        assert_int_equal(n, 0);
}

static void test_persist(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;

        assert_ok(add(f, "sync", "5ms", TLOB_FLAG_PERSIST, &error));
        assert_true(file_exists(f, 0, "bindings.d/tlobctl-sync.conf"));
        assert_ok(call(f, "RemoveBinding", &error, NULL, "st", "sync", 0, 0));
        assert_false(file_exists(f, 0, "bindings.d/tlobctl-sync.conf"));
}

static void test_refused_bindings_change_nothing(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;
        uint32_t n;
        int r;

        r = add(f, "../etc", "5ms", 0, &error);
        assert_refused(r, &error, TLOB_ERROR_INVALID_BINDING, "'../etc'");
        r = add(f, "x", "5 parsecs", 0, &error);
        assert_refused(r, &error, TLOB_ERROR_INVALID_BINDING, "5 parsecs");
        r = add(f, "x", "10ns", 0, &error);
        assert_refused(r, &error, TLOB_ERROR_INVALID_BINDING, "10ns");
        r = add(f, "x", "5ms", 2, &error);
        assert_refused(r, &error, SD_BUS_ERROR_INVALID_ARGS, "0x2");
        r = fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error, NULL,
                         "sa{sv}t", "x", 1, "Bugdet", "s", "5ms", UINT64_C(0));
        assert_refused(r, &error, TLOB_ERROR_INVALID_BINDING, "'Bugdet'");
        r = fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error, NULL,
                         "sa{sv}t", "x", 1, "BudgetSec", "u", 5, UINT64_C(0));
        assert_refused(r, &error, SD_BUS_ERROR_INVALID_ARGS, "must be a string");
        r = fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error, NULL,
                         "sa{sv}t", "x", 3, "Executable", "s", "libc.so.6", "Function", "s",
                         "fsynk", "BudgetSec", "s", "1ms", UINT64_C(0));
        assert_refused(r, &error, TLOB_ERROR_NO_SUCH_SYMBOL, "fsync");
        r = fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error, NULL,
                         "sa{sv}t", "x", 4, LIBC, "BudgetSec", "s", "1ms", "Backend", "s", "kernel",
                         UINT64_C(0));
        assert_refused(r, &error, TLOB_ERROR_NOT_SUPPORTED, "kernel");

        fake_fail_add(-EIO, "the kernel is out of sorts");
        r = add(f, "x", "5ms", 0, &error);
        assert_refused(r, &error, SD_BUS_ERROR_FAILED, "out of sorts");

        assert_false(file_exists(f, 1, "bindings.d/tlobctl-x.conf"));
        get_property(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "NBindings", "u", &n);
        assert_int_equal(n, 0);
}

static void test_names_are_taken_once(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;
        int r;

        fixture_write(f, 0, "bindings.d/50-mine.conf",
                      "[Binding mine]\nExecutable=libc.so.6\nFunction=fsync\nBudgetSec=1ms\n");
        assert_ok(call(f, "Reload", &error, NULL, NULL, NULL, 0, 0));
        r = add(f, "mine", "5ms", 0, &error);
        assert_refused(r, &error, TLOB_ERROR_BINDING_EXISTS, "50-mine.conf:1");
        r = call(f, "RemoveBinding", &error, NULL, "st", "mine", 0, 0);
        assert_refused(r, &error, SD_BUS_ERROR_FAILED, "50-mine.conf:1");
        r = call(f, "RemoveBinding", &error, NULL, "st", "nobody", 0, 0);
        assert_refused(r, &error, TLOB_ERROR_NO_SUCH_BINDING, "'nobody'");
}

static void test_budgets(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *path = TLOB_BUS_BINDING_PREFIX "/sync";
        unsigned before = fake_calls()->add, changes = fake_calls()->set_budget;
        Fixture *f = *state;
        uint64_t budget;
        int r;

        assert_ok(add(f, "sync", "5ms", 0, &error));
        assert_ok(call(f, "SetBudget", &error, NULL, "stt", "sync", 7000000, 0));
        get_property(f, path, TLOB_BUS_BINDING_INTERFACE, "BudgetNSec", "t", &budget);
        assert_int_equal(budget, 7000000);
        assert_int_equal(fake_calls()->set_budget, changes + 1);
        get_property(f, path, TLOB_BUS_BINDING_INTERFACE, "ConfiguredBudgetNSec", "t", &budget);
        assert_int_equal(budget, 5000000);

        /* It holds over a reload, and no probe was touched for it. */
        assert_ok(call(f, "Reload", &error, NULL, NULL, NULL, 0, 0));
        get_property(f, path, TLOB_BUS_BINDING_INTERFACE, "BudgetNSec", "t", &budget);
        assert_int_equal(budget, 7000000);
        assert_int_equal(fake_calls()->add, before + 1);

        assert_ok(call(f, "SetBudget", &error, NULL, "stt", "sync", TLOB_BUDGET_CONFIGURED, 0));
        get_property(f, path, TLOB_BUS_BINDING_INTERFACE, "BudgetNSec", "t", &budget);
        assert_int_equal(budget, 5000000);

        r = call(f, "SetBudget", &error, NULL, "stt", "sync", 999, 0);
        assert_refused(r, &error, TLOB_ERROR_INVALID_BINDING, "1us");
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        sd_bus_message **kept = userdata;

        sd_bus_message_unref(*kept);
        *kept = sd_bus_message_ref(m);
        return 0;
}

static const Report violation = {
        .type = REPORT_VIOLATION,
        .id = 4711,
        .time_ns = 1000000000,
        .late_ns = 3,
        .elapsed_ns = 6000000,
        .spent_ns = { 1000000, 2000000, 3000000 },
        .exceeded = 1,
        .state = TLOB_SLEEPING,
        .tid = 1,
        .comm = "bad\xff\nname",
};

static void test_a_violation_is_told(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        uint64_t budget_ns, elapsed_ns, running_ns, waiting_ns, sleeping_ns, n;
        const char *binding, *unit, *key;
        sd_bus_message *m = NULL, *reply = NULL;
        sd_bus_slot *slot = NULL;
        Fixture *f = *state;
        uint32_t tid;

        assert_ok(add(f, "sync", "5ms", 0, &error));
        assert_true(sd_bus_match_signal(f->client, &slot, NULL, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, "Violation", on_signal,
                                        &m) >= 0);
        fake_report(&violation);
        fixture_run(f);
        assert_non_null(m);
        assert_true(sd_bus_message_read(m, "ssuttttt", &binding, &unit, &tid, &budget_ns,
                                        &elapsed_ns, &running_ns, &waiting_ns, &sleeping_ns) > 0);
        assert_string_equal(binding, "sync");
        assert_string_equal(unit, "");
        assert_int_equal(tid, 1);
        assert_int_equal(budget_ns, 5000000);
        assert_int_equal(elapsed_ns, running_ns + waiting_ns + sleeping_ns);
        assert_true(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        assert_true(sd_bus_message_read(m, "{sv}", &key, "t", &n) > 0);
        assert_string_equal(key, "id");
        assert_int_equal(n, 4711);

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "GetViolations",
                               &error, &reply, "u", 0));
        assert_true(sd_bus_message_enter_container(reply, 'a', "a{sv}") > 0);
        assert_true(sd_bus_message_skip(reply, "a{sv}") > 0);
        assert_int_equal(sd_bus_message_at_end(reply, false), 1);

        sd_bus_message_unref(reply);
        sd_bus_slot_unref(slot);
        sd_bus_message_unref(m);
}

/* The number below key in the first violation of the log. */
static uint64_t get_logged(Fixture *f, const char *key) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *m = NULL;
        uint64_t n = UINT64_MAX;
        const char *name;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "GetViolations",
                               &error, &m, "u", 1));
        assert_true(sd_bus_message_enter_container(m, 'a', "a{sv}") > 0);
        assert_true(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                assert_true(sd_bus_message_read(m, "s", &name) > 0);
                if (strcmp(name, key) == 0)
                        assert_true(sd_bus_message_read(m, "v", "t", &n) > 0);
                else
                        assert_true(sd_bus_message_skip(m, "v") > 0);
                assert_true(sd_bus_message_exit_container(m) > 0);
        }
        sd_bus_message_unref(m);
        return n;
}

/* The log tells how long a window took in the end, also if its violation was held back. */
static void test_the_log_knows_the_end(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Report report = violation, completion = violation;
        Fixture *f = *state;

        assert_ok(add(f, "sync", "5ms", 0, &error));
        for (unsigned i = 0; i < 50; i++) {
                report.id++;
                fake_report(&report);
        }
        fixture_run(f);
        assert_int_equal(get_logged(f, "id"), report.id);
        assert_int_equal(get_logged(f, "took_ns"), UINT64_MAX);

        completion.id = report.id;
        completion.type = REPORT_COMPLETION;
        completion.elapsed_ns = 9000000;
        completion.spent_ns[TLOB_SLEEPING] = 6000000;
        fake_report(&completion);
        fixture_run(f);
        assert_int_equal(get_logged(f, "elapsed_ns"), 6000000);
        assert_int_equal(get_logged(f, "took_ns"), 9000000);
        assert_int_equal(get_logged(f, "took_sleeping_ns"), 6000000);
}

static void test_reports_are_limited_and_counted(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;
        uint64_t suppressed, violations;
        Report report = violation;

        assert_ok(add(f, "sync", "5ms", 0, &error));
        for (unsigned i = 0; i < 50; i++) {
                report.id++;
                fake_report(&report);
        }
        fixture_run(f);
        get_property(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Suppressed", "t", &suppressed);
        get_property(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Violations", "t", &violations);
        assert_int_equal(violations, 50);
        assert_int_equal(suppressed, 30);
}

/*
 * The back end lets some times more through than is told, and what it does not is counted with the
 * rest.
 */
static void test_what_the_back_end_suppresses_is_counted(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *m = NULL;
        sd_bus_slot *slot = NULL;
        Report report = violation;
        Fixture *f = *state;
        const char *text;
        uint64_t n;

        fixture_write(f, 0, "tlobd.conf", "[Daemon]\nRateLimitIntervalSec=1s\nRateLimitBurst=5\n");
        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Reload", &error, NULL,
                               NULL));
        assert_ok(add(f, "sync", "5ms", 0, &error));
        assert_int_equal(fake_calls()->limit.interval_ns, 1000000000);
        assert_int_equal(fake_calls()->limit.n, 50);
        assert_int_equal(fake_calls()->limit.n_overall, 10000);

        for (unsigned i = 0; i < 6; i++) {
                report.id++;
                fake_report(&report);
        }
        fixture_run(f);
        fake_suppress(1000);
        get_property(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Suppressed", "t", &n);
        assert_int_equal(n, 1001);

        fake_suppress(500);
        assert_true(sd_bus_match_signal(f->client, &slot, NULL, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, "Violation", on_signal,
                                        &m) >= 0);
        report.id++;
        report.time_ns += 2000000000;
        fake_report(&report);
        fixture_run(f);
        assert_non_null(m);
        assert_true(sd_bus_message_skip(m, "ssuttttt") > 0);
        assert_true(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        do {
                assert_true(sd_bus_message_enter_container(m, 'e', "sv") > 0);
                assert_true(sd_bus_message_read(m, "s", &text) > 0);
                if (streq(text, "suppressed"))
                        assert_true(sd_bus_message_read(m, "v", "t", &n) > 0);
                else
                        assert_true(sd_bus_message_skip(m, "v") > 0);
                assert_true(sd_bus_message_exit_container(m) >= 0);
        } while (!streq(text, "suppressed"));
        assert_int_equal(n, 1501);

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "ResetStatistics",
                               &error, NULL, NULL));
        get_property(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Suppressed", "t", &n);
        assert_int_equal(n, 1501);
        sd_bus_slot_unref(slot);
        sd_bus_message_unref(m);
}

static int count_signal(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        ++*(unsigned *) userdata;
        return 0;
}

/* Also of windows that are so many that the log has forgotten their violations. */
static void test_completions_keep_to_the_limit(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_slot *slots[2] = {};
        unsigned n_violations = 0, n_completed = 0;
        Report report = violation;
        Fixture *f = *state;

        assert_ok(add(f, "sync", "5ms", 0, &error));
        assert_true(sd_bus_match_signal(f->client, &slots[0], NULL, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, "Violation", count_signal,
                                        &n_violations) >= 0);
        assert_true(sd_bus_match_signal(f->client, &slots[1], NULL, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, "Completed", count_signal,
                                        &n_completed) >= 0);
        for (unsigned i = 0; i < 600; i++) {
                report.id = 1000 + i;
                fake_report(&report);
        }
        fixture_run(f);
        report.type = REPORT_COMPLETION;
        for (unsigned i = 0; i < 600; i++) {
                report.id = 1000 + i;
                fake_report(&report);
        }
        fixture_run(f);
        assert_int_equal(n_violations, 20);
        assert_int_equal(n_completed, 20);
        sd_bus_slot_unref(slots[0]);
        sd_bus_slot_unref(slots[1]);
}

/* The budget of a completion is the one that its window broke. */
static void test_a_completion_has_the_budget_that_was_broken(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *m = NULL;
        sd_bus_slot *slot = NULL;
        Report report = violation;
        const char *binding, *unit;
        Fixture *f = *state;
        uint64_t budget_ns;
        uint32_t tid;

        assert_ok(add(f, "sync", "5ms", 0, &error));
        assert_true(sd_bus_match_signal(f->client, &slot, NULL, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, "Completed", on_signal,
                                        &m) >= 0);
        fake_report(&report);
        fixture_run(f);
        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "SetBudget", &error,
                               NULL, "stt", "sync", UINT64_C(50000000), UINT64_C(0)));
        report.type = REPORT_COMPLETION;
        fake_report(&report);
        fixture_run(f);
        assert_non_null(m);
        assert_true(sd_bus_message_read(m, "ssut", &binding, &unit, &tid, &budget_ns) > 0);
        assert_int_equal(budget_ns, 5000000);
        sd_bus_slot_unref(slot);
        sd_bus_message_unref(m);
}

static void test_lost_records_are_told(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *m = NULL;
        sd_bus_slot *slot = NULL;
        Fixture *f = *state;
        uint64_t n;

        assert_ok(add(f, "sync", "5ms", 0, &error));
        assert_true(sd_bus_match_signal(f->client, &slot, NULL, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, "RecordsLost", on_signal,
                                        &m) >= 0);
        fake_lose(17);
        fixture_run(f);
        assert_non_null(m);
        assert_true(sd_bus_message_read(m, "t", &n) > 0);
        assert_int_equal(n, 17);
        get_property(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Lost", "t", &n);
        assert_int_equal(n, 17);
        sd_bus_slot_unref(slot);
        sd_bus_message_unref(m);
}

static void test_reload_keeps_what_did_not_change(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        unsigned added = fake_calls()->add, removed = fake_calls()->remove;
        sd_bus_message *reply = NULL;
        const char *name, *reason;
        Fixture *f = *state;
        uint32_t n_failed;

        fixture_write(f, 0, "bindings.d/a.conf",
                      "[Binding a]\nExecutable=libc.so.6\nFunction=fsync\nBudgetSec=1ms\n");
        fixture_write(f, 0, "bindings.d/b.conf",
                      "[Binding b]\nExecutable=libc.so.6\nFunction=fdatasync\nBudgetSec=1ms\n");
        assert_ok(call(f, "Reload", &error, NULL, NULL, NULL, 0, 0));
        assert_int_equal(fake_calls()->add, added + 2);

        /* One changes its function, one its budget, one comes and is bad. */
        fixture_write(f, 0, "bindings.d/a.conf",
                      "[Binding a]\nExecutable=libc.so.6\nFunction=read\nBudgetSec=1ms\n");
        fixture_write(f, 0, "bindings.d/b.conf",
                      "[Binding b]\nExecutable=libc.so.6\nFunction=fdatasync\nBudgetSec=2ms\n");
        fixture_write(f, 0, "bindings.d/c.conf",
                      "[Binding c]\nExecutable=/nonexistent\nFunction=f\nBudgetSec=2ms\n");
        assert_ok(call(f, "Reload", &error, &reply, NULL, NULL, 0, 0));
        assert_int_equal(fake_calls()->add, added + 3);
        assert_int_equal(fake_calls()->remove, removed + 1);
        assert_true(sd_bus_message_enter_container(reply, 'a', "(ss)") > 0);
        assert_true(sd_bus_message_read(reply, "(ss)", &name, &reason) > 0);
        assert_string_equal(name, "c");
        assert_non_null(strstr(reason, "c.conf:1"));
        assert_non_null(strstr(reason, "/nonexistent"));
        assert_int_equal(sd_bus_message_at_end(reply, false), 1);
        assert_state(f, TLOB_BUS_BINDING_PREFIX "/b", "active");
        assert_state(f, TLOB_BUS_BINDING_PREFIX "/c", "failed");
        get_property(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "NFailed", "u", &n_failed);
        assert_int_equal(n_failed, 1);
        sd_bus_message_unref(reply);
}

static size_t count_ignored(Fixture *f, const char *part) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply = NULL;
        const char *text;
        size_t n = 0;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, "org.freedesktop.DBus.Properties", "Get", &error,
                               &reply, "ss", TLOB_BUS_MANAGER_INTERFACE, "Ignored"));
        assert_true(sd_bus_message_enter_container(reply, 'v', "as") > 0);
        assert_true(sd_bus_message_enter_container(reply, 'a', "s") > 0);
        for (; sd_bus_message_read(reply, "s", &text) > 0; n++)
                assert_non_null(strstr(text, part));
        sd_bus_message_unref(reply);
        return n;
}

/* Until it is mended, and all has been read again. */
static void test_what_is_ignored_is_told(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;

        assert_int_equal(count_ignored(f, ""), 0);
        fixture_write(f, 0, "tlobd.conf.d/x.conf", "[Daemon]\nRateLimitBurst=lots\n");
        assert_ok(call(f, "Reload", &error, NULL, NULL, NULL, 0, 0));
        assert_int_equal(count_ignored(f, "tlobd.conf.d/x.conf:2: "), 1);
        fixture_write(f, 0, "tlobd.conf.d/x.conf", "[Daemon]\nRateLimitBurst=20\n");
        assert_ok(call(f, "Reload", &error, NULL, NULL, NULL, 0, 0));
        assert_int_equal(count_ignored(f, ""), 0);
}

static void test_a_unit_that_does_not_run(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error,
                               NULL, "sa{sv}t", "x", 4, LIBC, "BudgetSec", "s", "1ms", "Unit", "s",
                               "nothing.service", UINT64_C(0)));
        assert_state(f, TLOB_BUS_BINDING_PREFIX "/x", "waiting");
}

static void test_others_than_root_may_only_read(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;
        int r;

        if (geteuid() == 0) {
                assert_ok(add(f, "sync", "5ms", 0, &error));
                return;
        }
        r = add(f, "sync", "5ms", 0, &error);
        assert_refused(r, &error, SD_BUS_ERROR_ACCESS_DENIED, TLOB_ACTION_MANAGE_BINDINGS);
        assert_ok(call(f, "ListBindings", &error, NULL, NULL, NULL, 0, 0));
}

/* A character of three bytes is cut where an error repeats the beginning of a long key. */
static void test_errors_repeat_what_can_be_sent(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;
        char key[3 * 22 + 1] = "";

        for (unsigned i = 0; i < 22; i++)
                strcat(key, "\xe2\x82\xac");
        assert_refused(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding",
                                    &error, NULL, "sa{sv}t", "sync", 1, key, "s", "x", UINT64_C(0)),
                       &error, TLOB_ERROR_INVALID_BINDING, "\xe2\x82\xac\\xe2...'");
        assert_refused(add(f, "\033[2J", "5ms", 0, &error), &error, TLOB_ERROR_INVALID_BINDING,
                       "'\\x1b[2J'");
        assert_refused(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding",
                                    &error, NULL, "sa{sv}t", "sync", 1, "\033[2J", "u", 1,
                                    UINT64_C(0)),
                       &error, SD_BUS_ERROR_INVALID_ARGS, "'\\x1b[2J'");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_errors_repeat_what_can_be_sent),
                TEST(test_add_and_remove),
                TEST(test_persist),
                TEST(test_refused_bindings_change_nothing),
                TEST(test_names_are_taken_once),
                TEST(test_budgets),
                TEST(test_a_violation_is_told),
                TEST(test_the_log_knows_the_end),
                TEST(test_reports_are_limited_and_counted),
                TEST(test_what_the_back_end_suppresses_is_counted),
                TEST(test_completions_keep_to_the_limit),
                TEST(test_a_completion_has_the_budget_that_was_broken),
                TEST(test_lost_records_are_told),
                TEST(test_reload_keeps_what_did_not_change),
                TEST(test_what_is_ignored_is_told),
                TEST(test_a_unit_that_does_not_run),
                TEST(test_others_than_root_may_only_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
