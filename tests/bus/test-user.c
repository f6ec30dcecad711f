/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A tlobd for a user's own services: whom it lets change something, and what it says to the
 * journal. For who the others are, the test has to be root.
 */

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake-backend.h"
#include "fixture.h"
#include "journal-socket.h"
#include "journal.h"
#include "test.h"
#include "tlob-bus.h"

#define USER  64001
#define OTHER 64002

#define BINDING                                                                                    \
        "Executable", "s", "libc.so.6", "Function", "s", "fsync", "BudgetSec", "s", "1s",          \
                "OnViolation", "s", "look.service"

/* For as long as it is there, the process is that user's. */
static void be(uid_t user) {
        if (geteuid() != 0)
                assert_ok(seteuid(0));
        assert_ok(seteuid(user));
}

/* caller: who has made the connection; 0: root. */
static void start(void **state, uid_t caller) {
        Fixture *fixture;

        be(caller);
        assert_ok(fixture_setup(state));
        fixture = *state;
        manager_set_scope(fixture->manager, RUNTIME_SCOPE_USER);
        be(USER);
}

static int stop(void **state) {
        if (!*state)
                return 0;
        if (getuid() == 0)
                be(0);
        return fixture_teardown(state);
}

static int add(Fixture *f, sd_bus_error *error) {
        return fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", error, NULL,
                            "sa{sv}t", "sync", 4, BINDING, UINT64_C(0));
}

static int call(Fixture *f, const char *member, sd_bus_error *error) {
        return fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, member, error, NULL,
                            NULL);
}

/* As root does on the machine: also what starts a service, and as many as there is room for. */
static void test_the_user_may_do_all(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const Binding *binding;
        Fixture *f;

        if (getuid() == 0)
                start(state, USER);
        else {
                assert_ok(fixture_setup(state));
                manager_set_scope(((Fixture *) *state)->manager, RUNTIME_SCOPE_USER);
        }
        f = *state;
        assert_ok(add(f, &error));
        binding = binding_table_get(manager_bindings(f->manager), "sync");
        assert_non_null(binding);
        assert_int_equal(binding->source.added_by, 0);
        assert_string_equal(binding->on_violation, "look.service");
        assert_ok(call(f, "Reload", &error));
        assert_non_null(binding_table_get(manager_bindings(f->manager), "sync"));
        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "RemoveBinding",
                               &error, NULL, "st", "sync", UINT64_C(0)));
}

static void test_root_may(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        if (getuid() != 0)
                skip();
        start(state, 0);
        assert_ok(call(*state, "ResetStatistics", &error));
}

/* Nobody asks polkit, which knows the system bus only. */
static void test_others_may_only_read(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        if (getuid() != 0)
                skip();
        start(state, OTHER);
        assert_true(add(*state, &error) < 0);
        assert_string_equal(error.name, SD_BUS_ERROR_ACCESS_DENIED);
        assert_non_null(strstr(error.message, "this tlobd is for user 64001"));
        sd_bus_error_free(&error);
        assert_true(call(*state, "Reload", &error) < 0);
        assert_string_equal(error.name, SD_BUS_ERROR_ACCESS_DENIED);
        sd_bus_error_free(&error);
        assert_ok(call(*state, "ListBindings", &error));
}

/* What has been written to the journal. */
static void read_entry(int fd, char *ret, size_t size) {
        ssize_t n = recv(fd, ret, size - 1, MSG_DONTWAIT);

        assert_true(n > 0);
        ret[n] = '\0';
}

/* "journalctl --user -u" knows the one field of anybody's entries, and the other one of root's. */
static void test_entries_name_a_unit_of_the_user(void **state) {
        static const struct {
                RuntimeScope scope;
                const char *wanted, *other;
        } cases[] = {
                { RUNTIME_SCOPE_USER, "\nUSER_UNIT=app.service\n", "OBJECT_" },
                { RUNTIME_SCOPE_SYSTEM, "\nOBJECT_SYSTEMD_UNIT=app.service\n", "USER_UNIT=" },
        };
        struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/tmp/tlob-user-XXXXXX" };
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        const Violation violation = {
                .report = { .id = 1, .pid = 4711, .comm = "app" },
                .binding = (char *) "app.service/request",
                .unit = (char *) "app.service",
                .backend = "fake",
                .budget_ns = 5000000,
        };
        const Binding binding = { .name = (char *) "app.service/request",
                                  .unit = (char *) "app.service" };
        char text[8192];

        assert_non_null(mkdtemp(address.sun_path));
        strcat(address.sun_path, "/socket");
        assert_ok(bind(fd, &address, sizeof(address)));
        journal_socket_set_path(address.sun_path);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                journal_set_scope(cases[i].scope);
                assert_ok(journal_report(&violation));
                read_entry(fd, text, sizeof(text));
                assert_non_null(strstr(text, cases[i].wanted));
                assert_null(strstr(text, cases[i].other));
                assert_non_null(strstr(text, "\nTLOB_UNIT=app.service\n"));
                assert_ok(journal_binding_failure(&binding));
                read_entry(fd, text, sizeof(text));
                assert_non_null(strstr(text, cases[i].wanted));
                assert_null(strstr(text, cases[i].other));
        }
        journal_socket_set_path("/nonexistent");
        assert_ok(unlink(address.sun_path));
        *strrchr(address.sun_path, '/') = '\0';
        assert_ok(rmdir(address.sun_path));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_the_user_may_do_all, NULL, stop),
                cmocka_unit_test_setup_teardown(test_root_may, NULL, stop),
                cmocka_unit_test_setup_teardown(test_others_may_only_read, NULL, stop),
                cmocka_unit_test(test_entries_name_a_unit_of_the_user),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
