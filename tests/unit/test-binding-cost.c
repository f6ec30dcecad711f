/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "binding/cost.h"

#include "test.h"

static Binding *make(const char *unit, ProbeKind start, ProbeKind stop) {
        Binding *binding = NULL;

        assert_ok(binding_new("x", &binding));
        assert_ok(free_and_strdup(&binding->resolved.path, "/lib/libc.so.6"));
        assert_ok(free_and_strdup(&binding->unit, unit));
        binding->resolved.start_kind = start;
        binding->resolved.stop_kind = stop;
        return binding;
}

/* NULL: nothing is said. */
static void assert_cost(const char *unit, const FileUsers *users, const char *expected) {
        _cleanup_(binding_freep) Binding *binding = make(unit, PROBE_EMULATED, PROBE_STEPPED);
        _cleanup_free_ char *cost = NULL;

        assert_ok(binding_describe_cost(binding, users, NULL, &cost));
        if (!expected) {
                assert_null(cost);
                return;
        }
        assert_non_null(cost);
        assert_non_null(strstr(
                cost,
                ": each call of the measured code takes longer, by 0.5 to 0.8 us at the start "
                "and 6 to 11 us (single-stepped) at the stop"));
        *strstr(cost, ": each") = '\0';
        assert_string_equal(cost, expected);
}

#define USERS(...)                                                                                 \
        &(FileUsers) {                                                                             \
                __VA_ARGS__                                                                        \
        }

static void test_who_pays(void **state) {
        assert_cost(NULL, USERS(34, 34, 0),
                    "The probes are in all 34 processes that map /lib/libc.so.6");
        assert_cost(NULL, USERS(1, 1, 0),
                    "The probes are in the one process that maps /lib/libc.so.6");
        assert_cost(NULL, USERS(34, 34, 7),
                    "The probes are in at least 34 processes that map /lib/libc.so.6");
        assert_cost("a.service", USERS(34, 30, 0),
                    "The probes are in all 34 processes that map /lib/libc.so.6, 30 of them "
                    "outside a.service");
        assert_cost("a.service", USERS(3, 0, 1),
                    "The probes are in at least 3 processes that map /lib/libc.so.6, at least 0 of "
                    "them outside a.service");
        assert_cost(NULL, NULL, "The probes are in every process that maps /lib/libc.so.6");
        assert_cost(NULL, USERS(0, 0, 0),
                    "No process maps /lib/libc.so.6 now; any that does later gets the probes");
        assert_cost(NULL, USERS(0, 0, 2),
                    "tlobd sees no process that maps /lib/libc.so.6, but cannot inspect all; any "
                    "that does gets the probes");
}

/* Its unit has asked for it. */
static void test_nobody_else(void **state) {
        assert_cost("a.service", USERS(5, 0, 0), NULL);
        assert_cost("a.service", USERS(0, 0, 0), NULL);
}

static void test_unknown_kind(void **state) {
        _cleanup_(binding_freep) Binding *binding = make(NULL, PROBE_EMULATED, PROBE_UNKNOWN);
        _cleanup_free_ char *cost = NULL;

        assert_ok(binding_describe_cost(binding, USERS(2, 2, 0), NULL, &cost));
        assert_string_equal(cost, "The probes are in all 2 processes that map /lib/libc.so.6: "
                                  "each call of the measured code takes longer");
}

/* What was measured here is told. */
static void test_prices(void **state) {
        const ProbePrices prices = { .ns[PROBE_EMULATED] = 1440, .ns[PROBE_STEPPED] = 22400 };
        _cleanup_(binding_freep) Binding *binding = make(NULL, PROBE_EMULATED, PROBE_STEPPED);
        _cleanup_free_ char *cost = NULL;

        assert_ok(binding_describe_cost(binding, USERS(2, 2, 0), &prices, &cost));
        assert_non_null(
                strstr(cost, "by 1.4 us at the start and 22 us (single-stepped) at the stop"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_who_pays),
                cmocka_unit_test(test_nobody_else),
                cmocka_unit_test(test_unknown_kind),
                cmocka_unit_test(test_prices),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
