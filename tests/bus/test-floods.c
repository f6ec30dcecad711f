/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Clients that do not read, callers that ask all the time, and the end of the daemon: what waits
 * for the bus is bounded, what is not sent is counted, and the last signals are sent.
 */

#include <sys/stat.h>
#include <time.h>

#include "bus/internal.h"
#include "fake-backend.h"
#include "fixture.h"
#include "test.h"
#include "tlob-bus.h"

#define QUEUE_MAX 17000 /* messages: a bit more than are kept */

static const Report violation = {
        .type = REPORT_VIOLATION,
        .id = 1,
        .time_ns = 1000000000,
        .elapsed_ns = 6000000,
        .spent_ns = { 1000000, 2000000, 3000000 },
        .exceeded = 1,
        .tid = 1,
        .comm = "flood",
};

static void add_named(Fixture *f, const char *name) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error,
                               NULL, "sa{sv}t", name, 3, "Executable", "s", "libc.so.6", "Function",
                               "s", "fsync", "BudgetSec", "s", "5ms", UINT64_C(0)));
}

static void add_binding(Fixture *f) {
        add_named(f, "sync");
}

/* One turn of the daemon's side only. */
static bool turn_server(Fixture *f) {
        int r = sd_event_run(manager_get_event(f->manager), 0);

        assert_true(r >= 0);
        return r > 0;
}

static uint64_t n_queued(const Fixture *f) {
        uint64_t n;

        assert_ok(sd_bus_get_n_queued_write(bus_get_connection(f->bus), &n));
        return n;
}

static void report_once(Report *report) {
        fake_report(report);
        report->id++;
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        *(bool *) userdata = !sd_bus_message_is_method_error(m, NULL);
        return 0;
}

static uint64_t undelivered(Fixture *f, const char *cause) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *name;
        uint64_t n = 0;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, "org.freedesktop.DBus.Properties", "Get", &error,
                               &reply, "ss", TLOB_BUS_MANAGER_INTERFACE, "Undelivered"));
        assert_true(sd_bus_message_enter_container(reply, 'v', "a{st}") > 0);
        assert_true(sd_bus_message_enter_container(reply, 'a', "{st}") > 0);
        while (sd_bus_message_read(reply, "{st}", &name, &n) > 0)
                if (streq(name, cause))
                        return n;
        fail_msg("There is no cause '%s'.", cause);
        return 0;
}

static void call_list(Fixture *f) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        assert_ok(sd_bus_message_new_method_call(f->client, &m, NULL, TLOB_BUS_PATH,
                                                 TLOB_BUS_MANAGER_INTERFACE, "ListBindings"));
        assert_true(sd_bus_send(f->client, m, &(uint64_t) { 0 }) >= 0);
}

/* What a user's tlobd is told no more without. */
static void acknowledge(Fixture *f) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        assert_ok(sd_bus_message_new_method_call(f->client, &m, NULL, TLOB_BUS_PATH,
                                                 TLOB_BUS_LENDER_INTERFACE, "Heard"));
        assert_true(sd_bus_message_append(m, "u", 1) >= 0);
        assert_true(sd_bus_message_set_expect_reply(m, false) >= 0);
        assert_true(sd_bus_send(f->client, m, NULL) >= 0);
}

static int count_refusals(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        unsigned *n = userdata;

        *n += sd_bus_message_is_method_error(m, SD_BUS_ERROR_LIMITS_EXCEEDED) > 0;
        return 0;
}

/* It calls, and never reads an answer. */
static void test_a_caller_who_does_not_read(void **state) {
        Fixture *f = *state;
        unsigned n_refusals = 0;

        add_binding(f);
        for (unsigned i = 0; i < 25000; i++) {
                call_list(f);
                while (turn_server(f))
                        ;
        }
        assert_true(n_queued(f) > 0);
        assert_true(n_queued(f) <= QUEUE_MAX);

        /* When it reads at last, it finds that out, and is served again. */
        assert_true(sd_bus_add_filter(f->client, NULL, count_refusals, &n_refusals) >= 0);
        fixture_run(f);
        assert_int_equal(n_queued(f), 0);
        sleep(1);
        assert_true(n_refusals > 0);
        assert_int_equal(undelivered(f, "answers"), n_refusals);
}

static void test_a_listener_who_does_not_read(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Report report = violation;
        Fixture *f = *state;

        fixture_write(f, 0, "tlobd.conf", "[Daemon]\nRateLimitIntervalSec=0\n");
        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Reload", &error, NULL,
                               NULL));
        add_binding(f);
        /* How many the socket holds depends on the machine. */
        for (unsigned i = 0, n_after = 0; n_after < 3000 && i < 200000; i++) {
                report_once(&report);
                if (i % 500 != 0)
                        continue;
                while (turn_server(f))
                        ;
                n_after += n_queued(f) >= 1024 ? 500 : 0;
        }
        assert_in_range(n_queued(f), 1024, 1100);
        fixture_run(f);
        assert_in_range(undelivered(f, "signals"), 2000, 4000);
}

/*
 * Whoever waits for an answer itself reads calls that come meanwhile. They are heard although
 * reports come all the time.
 */
static void test_a_call_is_heard_among_reports(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        Report report = violation;
        bool answered = false;
        Fixture *f = *state;
        sd_bus *server = bus_get_connection(f->bus);
        uint64_t n;

        add_binding(f);
        assert_true(sd_bus_call_method_async(f->client, NULL, NULL, TLOB_BUS_PATH,
                                             "org.freedesktop.DBus.Peer", "Ping", on_answer,
                                             &answered, NULL) >= 0);
        assert_ok(sd_bus_message_new_method_call(server, &m, NULL, "/", "org.tlob1.Nobody", "Ask"));
        assert_int_equal(sd_bus_call(server, m, 10000, &error, NULL), -ETIMEDOUT);
        assert_ok(sd_bus_get_n_queued_read(server, &n));
        assert_int_equal(n, 1);

        for (unsigned i = 0; i < 1000 && !answered; i++) {
                report_once(&report);
                (void) turn_server(f);
                assert_true(sd_bus_process(f->client, NULL) >= 0);
        }
        assert_true(answered);
}

static int list(Fixture *f, sd_bus_error *error) {
        return fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "ListBindings", error,
                            NULL, NULL);
}

/*
 * Answers take a while: whoever asks all the time gets a share of it, and may change what it likes.
 * What it says to be told more is no question.
 */
static void test_a_caller_who_asks_too_much(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;
        uint64_t n_refused;
        unsigned n = 0;

        add_binding(f);
        fake_take_time(50000);
        while (list(f, &error) >= 0)
                assert_true(n++ < 100);
        assert_true(sd_bus_error_has_name(&error, SD_BUS_ERROR_LIMITS_EXCEEDED));
        /* Some 26, fewer on a busy machine, where each takes longer. */
        assert_in_range(n, 2, 60);
        sd_bus_error_free(&error);
        n_refused = f->bus->limits.n_refused;
        acknowledge(f);
        fixture_run(f);
        assert_int_equal(f->bus->limits.n_refused, n_refused);

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "SetBudget", &error,
                               NULL, "stt", "sync", UINT64_C(50000000), UINT64_C(0)));
        for (n = 0; list(f, &error) < 0; n++) {
                assert_true(n < 30);
                sd_bus_error_free(&error);
                sleep(1);
        }
        fake_take_time(0);
        sleep(1);
        assert_true(undelivered(f, "answers") > 0);
}

/* An error would repeat what is too long. */
static void test_a_call_that_is_too_long(void **state) {
        static const char *const members[] = { "GetBinding", "GetAll" };
        static const char *const interfaces[] = { TLOB_BUS_MANAGER_INTERFACE,
                                                  "org.freedesktop.DBus.Properties" };
        char longest[4096 + 1], longer[4096 + 2];
        Fixture *f = *state;

        memset(longest, 'x', sizeof(longest) - 1);
        memset(longer, 'x', sizeof(longer) - 1);
        longest[sizeof(longest) - 1] = longer[sizeof(longer) - 1] = '\0';
        for (size_t i = 0; i < ELEMENTSOF(members); i++) {
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

                assert_true(fixture_call(f, TLOB_BUS_PATH, interfaces[i], members[i], &error, NULL,
                                         "s", longest) < 0);
                assert_false(sd_bus_error_has_name(&error, SD_BUS_ERROR_LIMITS_EXCEEDED));
                sd_bus_error_free(&error);
                assert_true(fixture_call(f, TLOB_BUS_PATH, interfaces[i], members[i], &error, NULL,
                                         "s", longer) < 0);
                assert_true(sd_bus_error_has_name(&error, SD_BUS_ERROR_LIMITS_EXCEEDED));
        }
}

/* A key of more than 64 bytes is cut in the error. */
static void test_a_key_that_is_too_long(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;
        char key[5000];

        memset(key, 'K', sizeof(key) - 1);
        key[sizeof(key) - 1] = '\0';
        assert_true(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error,
                                 NULL, "sa{sv}t", "long", 1, key, "s", "yes", UINT64_C(0)) < 0);
        assert_true(sd_bus_error_has_name(&error, TLOB_ERROR_INVALID_BINDING));
        assert_in_range(strlen(error.message), 64, 200);
}

/* That file has so many bindings. */
static void write_bindings(Fixture *f, unsigned file, unsigned n) {
        _cleanup_free_ char *text = NULL;
        char name[32];
        size_t size;
        FILE *out = open_memstream(&text, &size);

        assert_non_null(out);
        for (unsigned i = 0; i < n; i++)
                (void) fprintf(out,
                               "[Binding b%u]\nExecutable=libc.so.6\nFunction=fsync\n"
                               "BudgetSec=1s\n",
                               file * n + i);
        assert_ok(fclose(out));
        (void) snprintf(name, sizeof(name), "bindings.d/%u.conf", file);
        fixture_write(f, 0, name, text);
}

static void reload(Fixture *f) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Reload", &error, NULL,
                               NULL));
}

static int get_all(Fixture *f, sd_bus_error *error) {
        return fixture_call(f, TLOB_BUS_PATH, "org.freedesktop.DBus.ObjectManager",
                            "GetManagedObjects", error, NULL, NULL);
}

/* Far more sections than there is room for: those without room cost next to nothing. */
static void test_a_large_configuration(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;

        fixture_write(f, 0, "tlobd.conf", "[Daemon]\nBindingsMax=50\n");
        for (unsigned file = 0; file < 4; file++)
                write_bindings(f, file, 10000);
        (void) alarm(30);
        reload(f);
        (void) alarm(0);
        assert_int_equal(manager_bindings(f->manager)->n, 40000);
        assert_int_equal(binding_table_count(manager_bindings(f->manager), BINDING_ACTIVE), 50);

        /* The bus would end our connection if they were all in one message. */
        assert_true(get_all(f, &error) < 0);
        assert_true(sd_bus_error_has_name(&error, SD_BUS_ERROR_LIMITS_EXCEEDED));
        assert_non_null(strstr(error.message, "too many bindings"));
}

/* However much was answered before, if none of it waits any more. */
static void test_answers_that_were_read(void **state) {
        Fixture *f = *state;

        fixture_write(f, 0, "tlobd.conf", "[Daemon]\nBindingsMax=50\n");
        write_bindings(f, 0, 1000);
        reload(f);
        for (unsigned i = 0; i < 1000 && n_queued(f) == 0; i++) {
                fixture_forgive_callers(f);
                call_list(f);
                while (turn_server(f))
                        ;
        }
        assert_true(n_queued(f) > 0);
        fixture_forgive_callers(f);
        call_list(f);
        while (turn_server(f))
                ;
        fixture_run(f);
        assert_int_equal(undelivered(f, "answers"), 0);
}

static int setup_many_violations(void **state) {
        return fixture_setup_configured(state,
                                        "[Daemon]\nRateLimitIntervalSec=0\nViolationsMax=65536\n");
}

/* More than a message may hold. */
static void test_an_answer_has_its_limit(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        Report report = violation;
        uint64_t id = 0, newest;
        Fixture *f = *state;
        const char *key;
        unsigned n = 0;

        add_binding(f);
        for (unsigned i = 0; i < 65536; i++) {
                report_once(&report);
                if (i % 500 == 0)
                        fixture_run(f);
        }
        newest = report.id - 1;
        fixture_run(f);
        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "GetViolations",
                               &error, &reply, "u", 0));
        assert_true(sd_bus_message_enter_container(reply, 'a', "a{sv}") > 0);
        while (sd_bus_message_enter_container(reply, 'a', "{sv}") > 0) {
                while (sd_bus_message_enter_container(reply, 'e', "sv") > 0) {
                        assert_true(sd_bus_message_read(reply, "s", &key) > 0);
                        if (n == 0 && streq(key, "id"))
                                assert_true(sd_bus_message_read(reply, "v", "t", &id) > 0);
                        else
                                assert_true(sd_bus_message_skip(reply, "v") > 0);
                        assert_true(sd_bus_message_exit_container(reply) > 0);
                }
                assert_true(sd_bus_message_exit_container(reply) > 0);
                n++;
        }
        assert_in_range(n, 1000, (8U << 20) / 500);
        assert_int_equal(id, newest);
}

static int count_answer(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        unsigned *n = userdata;

        n[sd_bus_message_is_method_error(m, NULL)]++;
        return 0;
}

#define N_LARGE_CALLS 300

/* However few messages they are. */
static void test_large_answers_wait_for_nobody(void **state) {
        unsigned n[2] = {}; /* answers, errors */
        Report report = violation;
        Fixture *f = *state;

        add_binding(f);
        for (unsigned i = 0; i < 1000; i++) {
                report_once(&report);
                if (i % 500 == 0)
                        fixture_run(f);
        }
        fixture_run(f);
        for (unsigned i = 0; i < N_LARGE_CALLS; i++) {
                assert_true(sd_bus_call_method_async(f->client, NULL, NULL, TLOB_BUS_PATH,
                                                     TLOB_BUS_MANAGER_INTERFACE, "GetViolations",
                                                     count_answer, n, "u", 0) >= 0);
                while (turn_server(f))
                        ;
        }
        fixture_run(f);
        assert_int_equal(n[0] + n[1], N_LARGE_CALLS);
        print_message("%u of %u were answered\n", n[0], N_LARGE_CALLS);
        assert_in_range(n[0], 2, 100);
}

/*
 * Whoever asks for all that is known of a binding has its books read once, and gets one reading of
 * them.
 */
static void test_all_properties_are_of_one_reading(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;
        unsigned before;

        add_binding(f);
        before = fake_calls()->statistics;
        assert_ok(fixture_call(f, TLOB_BUS_BINDING_PREFIX "/sync",
                               "org.freedesktop.DBus.Properties", "GetAll", &error, NULL, "s",
                               TLOB_BUS_BINDING_INTERFACE));
        assert_int_equal(fake_calls()->statistics, before + 1);
        assert_ok(fixture_call(f, TLOB_BUS_PATH, "org.freedesktop.DBus.ObjectManager",
                               "GetManagedObjects", &error, NULL, NULL));
        assert_int_equal(fake_calls()->statistics, before + 2);
}

static int count_signal(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        ++*(unsigned *) userdata;
        return 0;
}

/* What the back end still had when the loop was left. */
static void test_the_last_signals(void **state) {
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        Fixture *f = *state;
        unsigned n = 0;

        add_binding(f);
        assert_true(sd_bus_match_signal(f->client, &slot, NULL, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, "Violation", count_signal,
                                        &n) >= 0);
        fixture_run(f);
        fake_report(&violation);
        assert_true(sd_event_exit(manager_get_event(f->manager), 0) >= 0);
        assert_ok(sd_event_loop(manager_get_event(f->manager)));
        fixture_stop(f);
        while (sd_bus_process(f->client, NULL) > 0)
                ;
        assert_int_equal(n, 1);
}

/* Nobody reads, and the daemon ends all the same. */
static void test_the_end_comes(void **state) {
        Fixture *f = *state;
        time_t begin;

        add_binding(f);
        while (n_queued(f) < 100) {
                call_list(f);
                while (turn_server(f))
                        ;
        }
        begin = time(NULL);
        (void) alarm(20);
        fixture_stop(f);
        (void) alarm(0);
        assert_true(time(NULL) - begin < 5);
}

/* What the daemon says of itself is what the kernel says of this process. */
static void test_usage(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct stat st;
        Fixture *f = *state;
        uint64_t descriptors = 0, n = 0, value;
        const char *name;

        for (int fd = 0; fd < 1024; fd++)
                n += fstat(fd, &st) >= 0;
        assert_ok(fixture_call(f, TLOB_BUS_PATH, "org.freedesktop.DBus.Properties", "Get", &error,
                               &reply, "ss", TLOB_BUS_MANAGER_INTERFACE, "Usage"));
        assert_true(sd_bus_message_enter_container(reply, 'v', "a{st}") > 0);
        assert_true(sd_bus_message_enter_container(reply, 'a', "{st}") > 0);
        while (sd_bus_message_read(reply, "{st}", &name, &value) > 0) {
                assert_true(value > 0);
                if (streq(name, "descriptors"))
                        descriptors = value;
        }
        assert_int_equal(descriptors, n);
}

static int count_of(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        unsigned *counts = userdata;
        const char *binding;

        assert_true(sd_bus_message_read(m, "s", &binding) > 0);
        counts[binding[0] - 'a']++;
        return 0;
}

/* Bindings that are broken more often than all may be leave each other one report. */
static void test_the_limit_of_all(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        unsigned counts[3] = {};
        Report report = violation;
        Fixture *f = *state;

        fixture_write(f, 0, "tlobd.conf",
                      "[Daemon]\nRateLimitIntervalSec=1s\nRateLimitBurst=5\n"
                      "OverallRateLimitBurst=7\n");
        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Reload", &error, NULL,
                               NULL));
        add_named(f, "a");
        add_named(f, "b");
        add_named(f, "c");
        assert_true(sd_bus_match_signal(f->client, &slot, NULL, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, "Violation", count_of,
                                        counts) >= 0);
        for (unsigned i = 0; i < 18; i++) {
                report.backend_index = i / 6;
                report_once(&report);
        }
        fixture_run(f);
        assert_int_equal(counts[0], 5);
        assert_int_equal(counts[1], 2);
        assert_int_equal(counts[2], 1);

        /* The next interval. */
        report.time_ns += 2000000000;
        report.backend_index = 2;
        for (unsigned i = 0; i < 6; i++)
                report_once(&report);
        fixture_run(f);
        assert_int_equal(counts[2], 6);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_caller_who_does_not_read),
                TEST(test_a_listener_who_does_not_read),
                TEST(test_a_call_is_heard_among_reports),
                TEST(test_a_caller_who_asks_too_much),
                TEST(test_a_call_that_is_too_long),
                TEST(test_a_key_that_is_too_long),
                TEST(test_a_large_configuration),
                TEST(test_answers_that_were_read),
                TEST(test_all_properties_are_of_one_reading),
                cmocka_unit_test_setup_teardown(test_an_answer_has_its_limit, setup_many_violations,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_large_answers_wait_for_nobody,
                                                setup_many_violations, fixture_teardown),
                TEST(test_usage),
                TEST(test_the_limit_of_all),
                TEST(test_the_last_signals),
                TEST(test_the_end_comes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
