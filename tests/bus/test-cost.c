/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Who else pays for a binding: what Verify() foretells, and what GetCost() tells of one that is
 * set.
 */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake-backend.h"
#include "fixture.h"
#include "test.h"
#include "tlob-bus.h"

static char *get_cost(Fixture *f) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply = NULL;
        const char *cost;
        char *copy;

        assert_ok(fixture_call(f, TLOB_BUS_BINDING_PREFIX "/sync", TLOB_BUS_BINDING_INTERFACE,
                               "GetCost", &error, &reply, NULL));
        assert_true(sd_bus_message_read(reply, "s", &cost) > 0);
        copy = strdup(cost);
        sd_bus_message_unref(reply);
        return copy;
}

/* This process has mapped libc, too. */
static void test_cost(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *cost = NULL, *again = NULL, *spared = NULL;
        Fixture *f = *state;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error,
                               NULL, "sa{sv}t", "sync", 3, "Executable", "s", "libc.so.6",
                               "Function", "s", "fsync", "BudgetSec", "s", "5ms", UINT64_C(0)));
        cost = get_cost(f);
        if (!strstr(cost, "The probes are in ") || !strstr(cost, " that map") ||
            !strstr(cost, "libc.so.6: each call of the measured code takes longer"))
                fail_msg("'%s'", cost);
        again = get_cost(f);
        assert_string_equal(again, cost);

        fake_spare_others();
        spared = get_cost(f);
        assert_string_equal(spared, "");
        assert_true(fixture_call(f, TLOB_BUS_BINDING_PREFIX "/sync", TLOB_BUS_BINDING_INTERFACE,
                                 "GetCost", &error, NULL, "u", 1) < 0);
        assert_string_equal(error.name, SD_BUS_ERROR_INVALID_ARGS);
}

/* What Verify() has under that key for a binding from fsync() to there; NULL: nothing. */
static char *verify(Fixture *f, const char *wanted, const char *stop) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *key, *value;
        char *found = NULL;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Verify", &error,
                               &reply, "a{sv}", 4, "Executable", "s", "libc.so.6", "Start", "s",
                               "fsync", "Stop", "s", stop, "BudgetSec", "s", "5ms"));
        assert_true(sd_bus_message_enter_container(reply, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(reply, 'e', "sv") > 0) {
                assert_true(sd_bus_message_read(reply, "s", &key) > 0);
                if (streq(key, wanted)) {
                        assert_true(sd_bus_message_read(reply, "v", "s", &value) > 0);
                        found = strdup(value);
                } else
                        assert_true(sd_bus_message_skip(reply, "v") > 0);
                assert_true(sd_bus_message_exit_container(reply) > 0);
        }
        return found;
}

static bool verify_tells(Fixture *f, const char *wanted, const char *stop) {
        _cleanup_free_ char *found = verify(f, wanted, stop);

        return found;
}

/* What verifies many bindings of a file has its users counted once. */
static void test_counted_once(void **state) {
        uint64_t took_usec = UINT64_MAX;
        Fixture *f = *state;

        if (geteuid() != 0)
                skip();
        while (took_usec > 1500000) {
                _cleanup_free_ char *before = NULL, *after = NULL;
                uint64_t begin = now_usec();
                pid_t one_more;

                before = verify(f, "cost", "return");
                one_more = fork();
                assert_true(one_more >= 0);
                if (one_more == 0) {
                        (void) pause();
                        _exit(0);
                }
                after = verify(f, "cost", "fdatasync");
                (void) kill(one_more, SIGKILL);
                assert_int_equal(waitpid(one_more, NULL, 0), one_more);
                took_usec = now_usec() - begin;
                if (took_usec <= 1500000)
                        assert_memory_equal(after, before, strcspn(before, ":"));
        }
}

static void test_cost_foretold(void **state) {
        Fixture *f = *state;

        if (geteuid() != 0)
                skip();
        assert_true(verify_tells(f, "cost", "return"));
        fake_spare_others();
        assert_false(verify_tells(f, "cost", "return"));
}

/* It is that of a window which is one call. */
static void test_unwinding_cost(void **state) {
        Fixture *f = *state;

        if (geteuid() != 0)
                skip();
        assert_true(verify_tells(f, "unwinding-cost", "return"));
        assert_false(verify_tells(f, "unwinding-cost", "fdatasync"));
        fake_spare_others();
        assert_false(verify_tells(f, "unwinding-cost", "return"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_cost),
                TEST(test_cost_foretold),
                TEST(test_counted_once),
                TEST(test_unwinding_cost),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
