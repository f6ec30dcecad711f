/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The back ends by themselves, without a manager: who works here, who is made when, what is heard
 * of which binding, and when they go again. Which of them gets a binding is in test-choice.c.
 */

#include "manager/backends.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include "base/sentence.h"
#include "fake-backend.h"
#include "manager/backend-facts.h"
#include "test.h"

static int absent_error;

static int probe_absent(char **ret_reason) {
        return sentence_error(absent_error, ret_reason, "It is not for this machine");
}

static const BackendOps absent_ops = { .name = "absent", .probe = probe_absent };

static unsigned n_new;

static int probe_broken(char **ret_reason) {
        return 0;
}

static int new_broken(const BackendConfig *config, Backend **ret, char **ret_reason) {
        n_new++;
        return sentence_error(-EIO, ret_reason, "It cannot be made");
}

static int keep_nothing(Backend *backend, int ret_fds[static BACKEND_N_KEPT]) {
        return -EOPNOTSUPP;
}

static const BackendOps broken_ops = {
        .name = "broken",
        .probe = probe_broken,
        .new = new_broken,
        .keep = keep_nothing,
};

/* What was told, and of whom. */
typedef struct Heard {
        unsigned n_reports;
        const Binding *binding;
        uint64_t lost;
        unsigned n_events;
        unsigned n_given_up;
} Heard;

static void on_report(const Report *report, const Backend *backend, Binding *binding,
                      void *userdata) {
        Heard *heard = userdata;

        assert_ptr_equal(backend, binding->measurement.backend);
        heard->n_reports++;
        heard->binding = binding;
}

static void on_lost(uint64_t n, void *userdata) {
        ((Heard *) userdata)->lost += n;
}

static void on_event_done(void *userdata) {
        ((Heard *) userdata)->n_events++;
}

static void on_kept(const BackendOps *ops, const int *fds, void *userdata) {
        ((Heard *) userdata)->n_given_up += !fds;
}

static const BackendsHandlers handlers = {
        .kept = on_kept,
        .report = on_report,
        .lost = on_lost,
        .event_done = on_event_done,
};

/* With room for two bindings. */
static Backends *make(const BackendOps *const *ops, Heard *heard) {
        Backends *made;

        assert_ok(backends_new(ops, &handlers, heard, &made));
        backends_configure(made, &(BackendConfig) { .bindings_max = 2 });
        return made;
}

/* At that index of the fake back end, which is made if need be. */
static void put(Backends *some, Binding *binding, uint32_t index) {
        _cleanup_free_ char *error = NULL;

        assert_ok(backends_make(some, &fake_backend_ops, &binding->measurement.backend, &error));
        binding->measurement.index = index;
        backends_put(some, binding);
}

/* Its probes would be there for ever, without anybody who looks at what they cost. */
static void test_what_cannot_be_gone_on_with(void **state) {
        static const BackendOps *const ops[] = { &broken_ops, NULL };
        Heard heard = {};
        _cleanup_(backends_freep) Backends *some = make(ops, &heard);
        int fds[BACKEND_N_KEPT];

        for (size_t i = 0; i < BACKEND_N_KEPT; i++) {
                fds[i] = eventfd(0, EFD_CLOEXEC);
                assert_true(fds[i] >= 0);
        }
        assert_ok(backends_probe(some));
        backends_inherit(some, &broken_ops, fds);
        assert_false(backends_finish(some));
        assert_int_equal(heard.n_given_up, 1);
        for (size_t i = 0; i < BACKEND_N_KEPT; i++)
                assert_int_equal(fcntl(fds[i], F_GETFD), -1);
}

static void test_probe(void **state) {
        static const BackendOps *const ops[] = { &absent_ops, &fake_backend_ops, NULL };
        _cleanup_(backends_freep) Backends *some = make(ops, NULL);

        absent_error = -ENOENT;
        assert_null(backends_get(some, 0));
        assert_null(backends_get_absence(some, 0));
        assert_ok(backends_probe(some));
        assert_ptr_equal(backends_get(some, 0), &fake_backend_ops);
        assert_null(backends_get(some, 1));
        assert_ptr_equal(backends_get_absence(some, 0)->ops, &absent_ops);
        assert_string_equal(backends_get_absence(some, 0)->reason, "It is not for this machine");
        assert_null(backends_get_absence(some, 1));
}

/* One that few machines have is missed only where there is no other. */
static void test_limitations(void **state) {
        static const BackendOps *const both[] = { &absent_ops, &fake_backend_ops, NULL };
        static const BackendOps *const none[] = { &absent_ops, NULL };
        _cleanup_(backends_freep) Backends *quiet = make(both, NULL), *loud = make(both, NULL),
                                           *alone = make(none, NULL);
        Binding binding = {};

        absent_error = -ENOENT;
        assert_ok(backends_probe(quiet));
        assert_ok(backends_probe(alone));
        absent_error = -EPERM;
        assert_ok(backends_probe(loud));
        assert_null(backends_get_limitation(quiet, 0));
        assert_string_equal(backends_get_limitation(alone, 0), "It is not for this machine");
        assert_null(backends_get_limitation(alone, 1));
        assert_string_equal(backends_get_deadline_mode(loud), "");

        put(loud, &binding, 0);
        assert_string_equal(backends_get_limitation(loud, 0), "It is not for this machine");
        assert_string_equal(backends_get_limitation(loud, 1), "It measures nothing.");
        assert_null(backends_get_limitation(loud, 2));
        assert_string_equal(backends_get_deadline_mode(loud), "stop");
        backends_take(loud, &binding);
}

/* Reports come with their binding; those of one that is gone, and of none, do not come. */
static void test_reports(void **state) {
        Heard heard = {};
        _cleanup_(backends_freep) Backends *some = make(fake_backends, &heard);
        Binding binding = {}, successor = {};

        assert_ok(backends_probe(some));
        put(some, &binding, 1);
        fake_report(&(Report) { .type = REPORT_VIOLATION, .backend_index = 1 });
        fake_report(&(Report) { .type = REPORT_VIOLATION, .backend_index = 0 });
        fake_report(&(Report) { .type = REPORT_VIOLATION, .backend_index = 2 });
        backends_flush(some, NULL);
        assert_int_equal(heard.n_reports, 1);
        assert_ptr_equal(heard.binding, &binding);

        put(some, &successor, 1);
        fake_report(&(Report) { .type = REPORT_VIOLATION, .backend_index = 1 });
        fake_lose(3);
        backends_flush(some, successor.measurement.backend);
        assert_ptr_equal(heard.binding, &successor);
        assert_int_equal(heard.lost, 3);

        backends_take(some, &successor);
        fake_report(&(Report) { .type = REPORT_VIOLATION, .backend_index = 1 });
        fake_lose(2);
        backends_flush(some, NULL);
        assert_int_equal(heard.n_reports, 2);
        assert_int_equal(heard.lost, 5);
        assert_int_equal(backends_get_lost(some), 5);
        backends_stop(some);
        assert_int_equal(backends_get_lost(some), 5);
        assert_null(backends_get(some, 0));
}

static bool is(const Binding *binding, const void *userdata) {
        return binding == userdata;
}

/* One in the place of another takes no room. */
static void test_room(void **state) {
        _cleanup_(backends_freep) Backends *some = make(fake_backends, &(Heard) {});
        Binding first = {}, second = {}, third = {};

        assert_false(backends_are_full(some));
        assert_ok(backends_probe(some));
        assert_false(backends_are_full(some));
        put(some, &first, 0);
        put(some, &second, 0);
        assert_false(backends_have(some, is, &first));
        assert_true(backends_have(some, is, &second));
        assert_false(backends_are_full(some));
        put(some, &third, 1);
        assert_true(backends_are_full(some));
        backends_take(some, &second);
        assert_false(backends_are_full(some));
        assert_false(backends_have(some, is, &second));
        backends_take(some, &third);
}

/* The limit holds for those that are in use, and for those that come. */
static void test_limit(void **state) {
        _cleanup_(backends_freep) Backends *some = make(fake_backends, &(Heard) {});
        Binding binding = {};

        assert_ok(backends_probe(some));
        backends_limit_reports(some, &(ReportLimit) { .interval_ns = 1000, .n = 7 });
        put(some, &binding, 0);
        assert_int_equal(fake_calls()->limit.interval_ns, 1000);
        assert_int_equal(fake_calls()->limit.n, 7);
        backends_limit_reports(some, &(ReportLimit) { .interval_ns = 2000, .n = 8 });
        assert_int_equal(fake_calls()->limit.interval_ns, 2000);
        assert_int_equal(fake_calls()->limit.n, 8);
        backends_take(some, &binding);
}

/* An attempt may take seconds. */
static void test_broken(void **state) {
        static const BackendOps *const ops[] = { &broken_ops, NULL };
        _cleanup_(backends_freep) Backends *some = make(ops, &(Heard) {});
        Backend *backend = NULL;

        assert_ok(backends_probe(some));
        n_new = 0;
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_free_ char *error = NULL;

                assert_int_equal(backends_make(some, &broken_ops, &backend, &error), -EIO);
                assert_string_equal(error, "It cannot be made");
        }
        assert_int_equal(n_new, 1);
        assert_null(backend);
        assert_int_equal(backends_make(some, &fake_backend_ops, &backend, NULL), -EOPNOTSUPP);
}

/* In the loop, what is there is heard by itself, and one that nobody uses goes a second later. */
static void test_loop(void **state) {
        Heard heard = {};
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(backends_freep) Backends *some = make(fake_backends, &heard);
        Binding binding = {};

        assert_ok(sd_event_new(&event));
        backends_attach_event(some, event);
        assert_ok(backends_probe(some));
        put(some, &binding, 0);
        backends_release(some);
        assert_int_equal(sd_event_run(event, 0), 0);

        fake_report(&(Report) { .type = REPORT_VIOLATION });
        assert_true(sd_event_run(event, UINT64_MAX) > 0);
        assert_int_equal(heard.n_reports, 1);
        assert_int_equal(heard.n_events, 1);

        backends_take(some, &binding);
        backends_release(some);
        assert_string_equal(backends_get_deadline_mode(some), "stop");
        assert_true(sd_event_run(event, UINT64_MAX) > 0);
        assert_string_equal(backends_get_deadline_mode(some), "");
}

/* What cannot be read is tried again, and not all the time. */
static void test_what_cannot_be_read(void **state) {
        Heard heard = {};
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(backends_freep) Backends *some = make(fake_backends, &heard);
        unsigned before = fake_calls()->dispatch;
        Binding binding = {};

        assert_ok(sd_event_new(&event));
        backends_attach_event(some, event);
        assert_ok(backends_probe(some));
        put(some, &binding, 0);
        fake_fail_dispatch(true);
        fake_report(&(Report) { .type = REPORT_VIOLATION });
        assert_true(sd_event_run(event, UINT64_MAX) > 0);
        for (unsigned i = 0; i < 100; i++)
                assert_true(sd_event_run(event, 0) >= 0);
        assert_in_range(fake_calls()->dispatch - before, 1, 20);
        fake_fail_dispatch(false);
        while (heard.n_reports == 0)
                assert_true(sd_event_run(event, UINT64_MAX) > 0);
        backends_take(some, &binding);
}

/* What a daemon that died has left is heard when all bindings are in place. */
static void test_unfinished(void **state) {
        static const Report left = { .type = REPORT_VIOLATION };
        Heard heard = {};
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(backends_freep) Backends *some = make(fake_backends, &heard);
        Binding binding = {};

        assert_ok(sd_event_new(&event));
        backends_attach_event(some, event);
        fake_leave(&left);
        assert_ok(backends_probe(some));
        put(some, &binding, 0);
        assert_int_equal(sd_event_run(event, 0), 0);
        backends_flush(some, NULL);
        assert_int_equal(heard.n_reports, 0);
        backends_finish(some);
        assert_true(sd_event_run(event, 0) > 0);
        assert_int_equal(heard.n_reports, 1);
        backends_take(some, &binding);
}

/* What was lost while nobody was there is told, and what was told before is not told again. */
static void test_lost_by_another(void **state) {
        Heard heard = {};
        _cleanup_(backends_freep) Backends *some = make(fake_backends, &heard);
        Binding binding = {};

        fake_leave_lost(30, 12);
        assert_ok(backends_probe(some));
        put(some, &binding, 0);
        assert_int_equal(backends_get_lost(some), 12);
        assert_int_equal(heard.lost, 0);
        backends_finish(some);
        assert_int_equal(heard.lost, 18);
        assert_int_equal(backends_get_lost(some), 30);
        fake_lose(2);
        backends_flush(some, NULL);
        assert_int_equal(heard.lost, 20);
        assert_int_equal(fake_lost_as_told(), 32);
        backends_take(some, &binding);
}

/* At once, in use or not; it can be made again. */
static void test_clear(void **state) {
        _cleanup_(backends_freep) Backends *some = make(fake_backends, &(Heard) {});
        Backend *backend;

        assert_ok(backends_probe(some));
        backends_clear(some, &fake_backend_ops);
        for (unsigned i = 0; i < 2; i++) {
                assert_ok(backends_make(some, &fake_backend_ops, &backend, NULL));
                assert_string_equal(backends_get_deadline_mode(some), "stop");
                backends_clear(some, &fake_backend_ops);
                assert_string_equal(backends_get_deadline_mode(some), "");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_probe),
                cmocka_unit_test(test_limitations),
                cmocka_unit_test(test_reports),
                cmocka_unit_test(test_room),
                cmocka_unit_test(test_limit),
                cmocka_unit_test(test_broken),
                cmocka_unit_test(test_loop),
                cmocka_unit_test(test_what_cannot_be_read),
                cmocka_unit_test(test_what_cannot_be_gone_on_with),
                cmocka_unit_test(test_unfinished),
                cmocka_unit_test(test_lost_by_another),
                cmocka_unit_test(test_clear),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
