/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Probes that cost more than CPULimit=, of which the back end says what they cost. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fake-backend.h"
#include "fixture.h"
#include "temporary.h"
#include "test.h"
#include "tlob-bus.h"

static int try_to_add(Fixture *f, const char *name, const char *limit, sd_bus_error *error) {
        return fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", error, NULL,
                            "sa{sv}t", name, 4, "Executable", "s", "libc.so.6", "Function", "s",
                            "fsync", "BudgetSec", "s", "5ms", "CPULimit", "s", limit, UINT64_C(0));
}

static void add(Fixture *f, const char *name, const char *limit) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        assert_ok(try_to_add(f, name, limit, &error));
}

static const Binding *find(Fixture *f, const char *name) {
        const Binding *binding = manager_find_binding(f->manager, name, NULL);

        assert_non_null(binding);
        return binding;
}

static BindingState state_of(Fixture *f, const char *name) {
        return find(f, name)->measurement.state;
}

/* So many milliseconds pass. */
static void pass(Fixture *f, unsigned ms) {
        for (unsigned i = 0; i < ms; i += 10) {
                const struct timespec ts = { .tv_nsec = 10000000 };

                (void) nanosleep(&ts, NULL);
                fixture_run(f);
        }
}

/* For as long as a busy machine needs. */
static void wait_for(Fixture *f, const char *name, BindingState state) {
        for (unsigned i = 0; state_of(f, name) != state; i++) {
                assert_true(i < 500);
                pass(f, 10);
        }
}

static void reload(Fixture *f) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Reload", &error, NULL,
                               NULL));
}

static void test_too_dear(void **state) {
        Fixture *f = *state;
        const char *reason;
        unsigned percent;

        add(f, "dear", "50%");
        add(f, "cheap", "50%");
        add(f, "allowed", "infinity");
        fake_take_cpu(0, 70);
        fake_take_cpu(1, 5);
        fake_take_cpu(2, 20);
        wait_for(f, "dear", BINDING_FAILED);
        reason = find(f, "dear")->measurement.reason;
        assert_int_equal(
                sscanf(reason, "Its probes and timers took %u%% of a CPU, more than CPULimit=50%%:",
                       &percent),
                1);
        assert_in_range(percent, 60, 75);
        assert_null(find(f, "dear")->measurement.backend);
        assert_int_equal(state_of(f, "cheap"), BINDING_ACTIVE);
        assert_int_equal(state_of(f, "allowed"), BINDING_ACTIVE);

        /* As when systemd reloads: nobody has asked for it. */
        assert_true(manager_reload(f->manager) >= 0);
        fixture_run(f);
        assert_int_equal(state_of(f, "dear"), BINDING_FAILED);
        reload(f);
        assert_int_equal(state_of(f, "dear"), BINDING_ACTIVE);
        assert_null(find(f, "dear")->measurement.reason);
}

/* Less than the limit in half a second, whatever it was in between. */
static void test_burst(void **state) {
        Fixture *f = *state;

        add(f, "burst", "80%");
        fake_take_cpu(0, 0);
        fixture_run(f);
        fake_spend(0, 120000000);
        pass(f, 1000);
        assert_int_equal(state_of(f, "burst"), BINDING_ACTIVE);
}

static void test_all_together(void **state) {
        Fixture *f = *state;

        add(f, "a", "infinity");
        add(f, "b", "infinity");
        add(f, "c", "infinity");
        fake_take_cpu(0, 45);
        fake_take_cpu(1, 60);
        fake_take_cpu(2, 40);
        wait_for(f, "b", BINDING_FAILED);
        assert_non_null(strstr(find(f, "b")->measurement.reason, "CPULimit=100% of tlobd.conf"));
        pass(f, 1000);
        assert_int_equal(state_of(f, "a"), BINDING_ACTIVE);
        assert_int_equal(state_of(f, "c"), BINDING_ACTIVE);
}

/* Of what its place has cost before it came, and somebody looks. */
static void test_late(void **state) {
        Fixture *f = *state;

        add(f, "before", "50%");
        fake_take_cpu(0, 5);
        fixture_run(f);
        fake_set_past_cost(UINT64_C(60000000000));
        add(f, "late", "50%");
        pass(f, 1000);
        assert_int_equal(state_of(f, "late"), BINDING_ACTIVE);
        assert_int_equal(state_of(f, "before"), BINDING_ACTIVE);
}

/* Of what it has cost in a file that another one takes the place of, while somebody looks. */
static void test_replaced(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;
        char path[128], command[1024];
        Temporary tmp;

        temporary_init(&tmp);
        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "program"));
        (void) snprintf(command, sizeof(command), "cp /proc/%i/exe %s", getpid(), path);
        assert_int_equal(system(command), 0);
        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error,
                               NULL, "sa{sv}t", "replaced", 4, "Executable", "s", path, "Function",
                               "s", "main", "BudgetSec", "s", "5ms", "CPULimit", "s", "50%",
                               UINT64_C(0)));
        fake_spend(0, UINT64_C(60000000000));
        fake_take_cpu(0, 5);
        fixture_run(f);
        (void) snprintf(command, sizeof(command), "cp %s %s.new && mv %s.new %s", path, path, path,
                        path);
        assert_int_equal(system(command), 0);
        for (unsigned i = 0; !find(f, "replaced")->former; i++) {
                assert_true(i < 500);
                pass(f, 10);
        }
        pass(f, 1000);
        assert_int_equal(state_of(f, "replaced"), BINDING_ACTIVE);
        temporary_done(&tmp);
}

/* What was configured stays, though it is dearer. */
static void test_passing_first(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error,
                               NULL, "sa{sv}t", "own", 4, "Executable", "s", "libc.so.6",
                               "Function", "s", "fsync", "BudgetSec", "s", "5ms", "CPULimit", "s",
                               "infinity", TLOB_FLAG_PERSIST));
        add(f, "passing", "infinity");
        fake_take_cpu(0, 90);
        fake_take_cpu(1, 30);
        wait_for(f, "passing", BINDING_FAILED);
        pass(f, 1000);
        assert_int_equal(state_of(f, "own"), BINDING_ACTIVE);
}

static void test_bad_limit(void **state) {
        static const char *const bad[] = { "50", "%", "0%", "-1%", "1.5%", "1000001%", "all" };
        Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

                assert_true(try_to_add(f, "x", bad[i], &error) < 0);
                assert_non_null(strstr(error.message, "is not a share of a CPU: write one such as "
                                                      "50%, or infinity"));
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_too_dear),  TEST(test_burst),    TEST(test_all_together),
                TEST(test_late),      TEST(test_replaced), TEST(test_passing_first),
                TEST(test_bad_limit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
