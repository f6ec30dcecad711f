/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tolerance=: that it is broken, and kept again, is told once, with the figures. */

#include "base/clock.h"
#include "fake-backend.h"
#include "fixture.h"
#include "manager/tolerance.h"
#include "test.h"
#include "tlob-bus.h"

#define WAIT_NS UINT64_C(5000000000)

/* What was signalled last. */
typedef struct Told {
        unsigned n;
        char state[16];
        uint64_t windows, violations;
        double burn_rate;
} Told;

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *name, *path, *unit, *state;
        Told *told = userdata;

        assert_true(sd_bus_message_read(m, "sossttd", &name, &path, &unit, &state, &told->windows,
                                        &told->violations, &told->burn_rate) > 0);
        assert_string_equal(name, "sync");
        assert_string_equal(path, TLOB_BUS_BINDING_PREFIX "/sync");
        assert_string_equal(unit, "");
        (void) snprintf(told->state, sizeof(told->state), "%s", state);
        told->n++;
        return 0;
}

static void add(Fixture *f, const char *tolerance) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error,
                               NULL, "sa{sv}t", "sync", 5, "Executable", "s", "libc.so.6",
                               "Function", "s", "fsync", "BudgetSec", "s", "5ms", "Tolerance", "s",
                               tolerance, "ToleranceWindowSec", "s", "1min", UINT64_C(0)));
}

/* With a tolerance of 3/100. The slot is the caller's. */
static sd_bus_slot *listen_and_add(Fixture *f, Told *told) {
        sd_bus_slot *slot = NULL;

        assert_true(sd_bus_match_signal(f->client, &slot, NULL, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, "ToleranceChanged", on_signal,
                                        told) >= 0);
        add(f, "3/100");
        return slot;
}

static void violate(Fixture *f, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                fake_report(&(Report) {
                        .type = REPORT_VIOLATION,
                        .id = i + 1,
                        .time_ns = now_ns(),
                        .elapsed_ns = 6000000,
                });
        fixture_run(f);
}

static Binding *binding(const Fixture *f) {
        Binding *found = manager_find_binding(f->manager, "sync", NULL);

        assert_non_null(found);
        return found;
}

static void wait_until(Fixture *f, const Told *told, unsigned n) {
        uint64_t until = now_ns() + WAIT_NS;

        while (told->n < n && now_ns() < until)
                fixture_run(f);
        assert_int_equal(told->n, n);
}

/* A minute goes by. */
static void let_pass(const Fixture *f) {
        BindingTolerance *state = &binding(f)->tolerance_state;

        for (size_t i = 0; i < TOLERANCE_SAMPLES; i++)
                state->track->samples[i].ns -= 60 * UINT64_C(1000000000);
}

static void test_broken_and_kept_again(void **state) {
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        Fixture *f = *state;
        Told told = {};

        slot = listen_and_add(f, &told);
        assert_string_equal(binding_tolerance_state(binding(f)), "kept");
        violate(f, 3);
        violate(f, 1);
        wait_until(f, &told, 1);
        assert_string_equal(told.state, "broken");
        assert_int_equal(told.windows, 4);
        assert_int_equal(told.violations, 4);
        assert_true(told.burn_rate > 1.33 && told.burn_rate < 1.34);
        assert_string_equal(binding_tolerance_state(binding(f)), "broken");
        let_pass(f);
        wait_until(f, &told, 2);
        assert_string_equal(told.state, "kept");
        assert_string_equal(binding_tolerance_state(binding(f)), "kept");
}

/* What its reports say when it goes has been counted already. */
static void test_the_last_reports_change_nothing(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        Fixture *f = *state;
        Told told = {};

        slot = listen_and_add(f, &told);
        violate(f, 2);
        binding(f)->tolerance_state.judged_ns -= 2 * UINT64_C(1000000000);
        fake_report(&(Report) { .type = REPORT_VIOLATION, .id = 9, .time_ns = now_ns() });
        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "RemoveBinding",
                               &error, NULL, "st", "sync", UINT64_C(0)));
        fixture_run(f);
        assert_int_equal(told.n, 0);
}

static void test_a_reset(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        Fixture *f = *state;
        Told told = {};

        slot = listen_and_add(f, &told);
        violate(f, 4);
        wait_until(f, &told, 1);
        assert_string_equal(told.state, "broken");
        assert_ok(fixture_call(f, TLOB_BUS_BINDING_PREFIX "/sync", TLOB_BUS_BINDING_INTERFACE,
                               "ResetStatistics", &error, NULL, NULL));
        fixture_run(f);
        assert_string_equal(binding_tolerance_state(binding(f)), "broken");
        assert_int_equal(told.n, 1);
        let_pass(f);
        wait_until(f, &told, 2);
        assert_string_equal(told.state, "kept");
        assert_int_equal(told.windows, 0);
}

/* Whoever heard that it is broken hears that nobody judges it any more. */
static void test_it_goes(void **state) {
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        Fixture *f = *state;
        Told told = {};

        slot = listen_and_add(f, &told);
        violate(f, 4);
        wait_until(f, &told, 1);
        binding(f)->tolerance = (Tolerance) {};
        manager_follow_tolerance(f->manager, binding(f));
        wait_until(f, &told, 2);
        assert_string_equal(told.state, "");
        assert_null(binding(f)->tolerance_state.track);
        manager_follow_tolerance(f->manager, binding(f));
        fixture_run(f);
        assert_int_equal(told.n, 2);
}

static void test_without(void **state) {
        Fixture *f = *state;

        add(f, "");
        violate(f, 10);
        assert_string_equal(binding_tolerance_state(binding(f)), "");
        assert_null(binding(f)->tolerance_state.track);
}

static void test_what_is_none(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;

        assert_true(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error,
                                 NULL, "sa{sv}t", "sync", 1, "Tolerance", "s", "100%",
                                 UINT64_C(0)) < 0);
        assert_non_null(strstr(error.message, "Tolerance=100% is not a share of the windows"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_broken_and_kept_again),
                TEST(test_the_last_reports_change_nothing),
                TEST(test_a_reset),
                TEST(test_it_goes),
                TEST(test_without),
                TEST(test_what_is_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
