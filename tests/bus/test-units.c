/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Units as systemd tells of them, by a stand-in for it (fake-systemd.h). */

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "fake-backend.h"
#include "fake-systemd.h"
#include "test.h"
#include "tlob-bus.h"
#include "unit/unit.h"

static void test_life(void **state) {
        FakeUnit *unit = add_unit("x.service", SECTION("5ms"));

        add_unit("y.service", "[Service]\n");
        reload();
        assert_state("x.service/a", BINDING_WAITING);
        assert_int_equal(manager_bindings(systemd.fixture->manager)->n, 1);
        /* A unit that nobody has written about is not asked about. */
        assert_int_equal(systemd.n_questions, 1);

        unit->cgroup = "/";
        unit_changes("x.service");
        assert_state("x.service/a", BINDING_ACTIVE);
        unit->cgroup = "";
        unit_changes("x.service");
        assert_state("x.service/a", BINDING_WAITING);
        assert_string_equal(binding("x.service/a")->measurement.reason, "x.service is not running");
}

/* It ends by that signal, and is started again, when systemd forgets that. */
static void end_and_start(FakeUnit *unit, uint64_t usec, int signal) {
        unit->end_code = CLD_KILLED;
        unit->end_status = signal;
        unit->end_usec = usec;
        unit->cgroup = "";
        unit_changes(unit->name);
        unit->end_code = unit->end_status = 0;
        unit->end_usec = 0;
        unit->cgroup = "/";
        unit_changes(unit->name);
}

/* Its third start is without probes, until somebody asks for them. */
static void test_a_unit_that_crashes(void **state) {
        FakeUnit *unit = add_unit("x.service", SECTION("5ms"));

        unit->cgroup = "/";
        reload();
        end_and_start(unit, 1000, SIGSEGV);
        /* The same, told twice. */
        unit_changes("x.service");
        assert_state("x.service/a", BINDING_ACTIVE);
        end_and_start(unit, 599000000, SIGSEGV);
        assert_state("x.service/a", BINDING_FAILED);
        assert_non_null(strstr(binding("x.service/a")->measurement.reason,
                               "x.service crashed twice within 10min while it was measured, with "
                               "SIGSEGV: "));
        assert_null(binding("x.service/a")->measurement.backend);
        end_and_start(unit, 599000001, SIGSEGV);
        reload();
        assert_state("x.service/a", BINDING_FAILED);

        /* Whoever has looked at its processes has seen none with its probes. */
        manager_find_binding(systemd.fixture->manager, "x.service/a", NULL)->look.due_usec = 0;
        manager_forgive(systemd.fixture->manager);
        reload();
        assert_state("x.service/a", BINDING_ACTIVE);
        assert_true(binding("x.service/a")->look.due_usec > 0);
        end_and_start(unit, 600000000, SIGILL);
        assert_state("x.service/a", BINDING_ACTIVE);
        end_and_start(unit, 600000001, SIGILL);
        assert_state("x.service/a", BINDING_FAILED);
}

/* Rarely, or not by wrong code; or before anybody has looked. */
static void test_ends_that_are_no_matter_of_probes(void **state) {
        FakeUnit *unit = add_unit("x.service", SECTION("5ms"));

        unit->cgroup = "/";
        unit->end_code = CLD_DUMPED;
        unit->end_status = SIGSEGV;
        unit->end_usec = 1;
        reload();
        end_and_start(unit, 1000, SIGSEGV);
        assert_state("x.service/a", BINDING_ACTIVE);
        end_and_start(unit, 700000000, SIGSEGV);
        assert_state("x.service/a", BINDING_ACTIVE);
        for (unsigned i = 1; i < 5; i++)
                end_and_start(unit, 700000000 + i, SIGKILL);
        unit->end_code = CLD_EXITED;
        unit->end_status = SIGSEGV;
        unit->end_usec = 700000010;
        unit_changes("x.service");
        assert_state("x.service/a", BINDING_ACTIVE);
}

/* What does not change is not touched, and a budget is changed in place. */
static void test_reload(void **state) {
        FakeCalls before;

        add_unit("x.service", SECTION("5ms"))->cgroup = "/";
        add_unit("z.service", SECTION("6ms"))->cgroup = "/";
        reload();
        before = *fake_calls();
        reload();
        assert_int_equal(fake_calls()->add, before.add);
        assert_int_equal(fake_calls()->remove, before.remove);

        write_file("x.service", SECTION("7ms"));
        reload();
        assert_int_equal(fake_calls()->add, before.add);
        assert_int_equal(fake_calls()->remove, before.remove);
        assert_int_equal(binding("x.service/a")->budget_ns[TLOB_BUDGET_TOTAL], 7000000);
        assert_int_equal(binding("z.service/a")->budget_ns[TLOB_BUDGET_TOTAL], 6000000);

        write_file("x.service", "[Service]\n");
        reload();
        assert_null(binding("x.service/a"));
        assert_int_equal(fake_calls()->remove, before.remove + 1);
}

static void test_states(void **state) {
        FakeUnit *unit = add_unit("x.service", SECTION("5ms"));

        unit->state = "masked";
        reload();
        assert_null(binding("x.service/a"));
        unit->state = "loaded";
        unit_changes("x.service");
        assert_state("x.service/a", BINDING_WAITING);
        unit->state = "error";
        unit_changes("x.service");
        assert_null(binding("x.service/a"));
}

static void test_instances(void **state) {
        FakeUnit *unit;

        add_unit("t@.service", SECTION("5ms"))->id = "nothing.service";
        reload();
        assert_int_equal(manager_bindings(systemd.fixture->manager)->n, 0);

        unit = add_unit("t@a.service", "");
        (void) strcpy(unit->fragment, systemd.units[0].fragment);
        unit->cgroup = "/";
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "JobRemoved", "uoss", 1, "/", "t@a.service",
                    "done");
        fixture_run(systemd.fixture);
        assert_state("t@a.service/a", BINDING_ACTIVE);
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "UnitRemoved", "so", "t@a.service", "/");
        fixture_run(systemd.fixture);
        assert_null(binding("t@a.service/a"));
}

#define STAND_IN "t@" UNIT_STAND_IN ".service"

/* A template, and what systemd says of instances of it. */
static void add_template(const char *text) {
        FakeUnit *unit = add_unit("t@.service", text), *stand_in;

        unit->id = "nothing.service";
        stand_in = &systemd.units[systemd.n++];
        *stand_in = *unit;
        stand_in->name = stand_in->id = STAND_IN;
}

static FakeUnit *add_instance(const char *name) {
        FakeUnit *unit = &systemd.units[systemd.n++];

        *unit = systemd.units[0];
        unit->name = unit->id = name;
        return unit;
}

/* The instance has taken the spare of that binding of the back end, and is over its budget. */
static void instance_begins(uint32_t index, const char *cgroup_path) {
        Report report = {
                .type = REPORT_INSTANCE,
                .backend_index = index,
                .cgroup_path = cgroup_path,
                .cgroup_level = 2,
        };
        Report violation = {
                .type = REPORT_VIOLATION,
                .backend_index = index,
                .id = 1000 + index,
                .elapsed_ns = 6000000,
                .spent_ns = { 6000000 },
        };

        fake_report(&report);
        fake_report(&violation);
}

static const Violation *last_violation(void) {
        return manager_get_violation(systemd.fixture->manager, 0);
}

/*
 * The bindings that the back end has. How often one was added is of no use where there are spares:
 * one whose files answer late is given back, and made again.
 */
static unsigned n_held(void) {
        return fake_calls()->add - fake_calls()->remove;
}

static void test_spares(void **state) {
        Manager *m = systemd.fixture->manager;
        unsigned before = n_held();
        uint32_t index;
        FakeUnit *unit;

        fixture_write(systemd.fixture, 0, "tlobd.conf", "[Daemon]\nSpareInstances=3\n");
        add_template(SECTION("5ms") "[X-Tlob bad]\nExecutable=libc.so.6\nFunction=nosuch\n"
                                    "BudgetSec=1s\n");
        reload();
        assert_int_equal(manager_bindings(m)->n, 0);
        assert_int_equal(n_held(), before + 3);
        reload();
        assert_int_equal(n_held(), before + 3);

        /* Its name is known before systemd says anything, and the violation has it. */
        unit = add_instance("t@a.service");
        instance_begins(1, "/system.slice/t@a.service");
        manager_take_instances(m);
        assert_state("t@a.service/a", BINDING_ACTIVE);
        assert_string_equal(last_violation()->binding, "t@a.service/a");
        assert_string_equal(last_violation()->unit, "t@a.service");
        /* The next spare has its probes as soon as its file has been read. */
        assert_true(n_held() >= before + 3);
        index = binding("t@a.service/a")->measurement.index;

        /* What systemd says then: it has ended; it starts again; it is forgotten. */
        fixture_run(systemd.fixture);
        assert_state("t@a.service/a", BINDING_WAITING);
        assert_state("t@a.service/bad", BINDING_FAILED);
        unit->cgroup = "/";
        unit_changes("t@a.service");
        assert_state("t@a.service/a", BINDING_ACTIVE);
        assert_int_equal(binding("t@a.service/a")->measurement.index, index);
        assert_int_equal(binding("t@a.service/a")->measurement.past.statistics.counters.starts, 0);
        assert_int_equal(n_held(), before + 4);
        unit->cgroup = "";
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "UnitRemoved", "so", "t@a.service", "/");
        fixture_run(systemd.fixture);
        assert_null(binding("t@a.service/a"));
        assert_int_equal(n_held(), before + 3);
}

/* A change of a template is one of its spares; without sections it has none. */
static void test_spares_change(void **state) {
        Manager *m = systemd.fixture->manager;
        FakeCalls before = *fake_calls();

        fixture_write(systemd.fixture, 0, "tlobd.conf", "[Daemon]\nSpareInstances=2\n");
        fixture_write(systemd.fixture, 1, "overrides.d/x.conf",
                      "[Override t@b.service/a]\nBudgetSec=9ms\n");
        add_template(SECTION("5ms"));
        reload();
        write_file("t@.service", SECTION("7ms"));
        reload();
        assert_int_equal(fake_calls()->add, before.add + 4);
        assert_int_equal(fake_calls()->remove, before.remove + 2);

        add_instance("t@a.service");
        add_instance("t@b.service");
        instance_begins(0, "/system.slice/t@a.service");
        instance_begins(1, "/system.slice/t@b.service");
        manager_take_instances(m);
        assert_int_equal(binding("t@a.service/a")->budget_ns[TLOB_BUDGET_TOTAL], 7000000);
        assert_int_equal(binding("t@b.service/a")->budget_ns[TLOB_BUDGET_TOTAL], 9000000);
        assert_int_equal(fake_calls()->add, before.add + 6);
        fixture_run(systemd.fixture);

        write_file("t@.service", "[Service]\n");
        reload();
        assert_int_equal(manager_bindings(m)->n, 0);
        assert_int_equal(fake_calls()->remove, before.remove + 6);
}

/* Where there is no room, spares go first. */
static void test_spares_give_way(void **state) {
        FakeCalls before = *fake_calls();

        fixture_write(systemd.fixture, 0, "tlobd.conf", "[Daemon]\nSpareInstances=2\n");
        add_template(SECTION("5ms"));
        reload();
        fake_fail_add(-ENOSPC, "No room");
        fixture_write(systemd.fixture, 0, "bindings.d/b.conf",
                      "[Binding b]\nExecutable=libc.so.6\nFunction=fsync\nBudgetSec=1ms\n");
        reload();
        assert_state("b", BINDING_ACTIVE);
        assert_int_equal(fake_calls()->remove, before.remove + 1);
}

/* A unit that was never loaded, and that a file for many of its prefix is for. */
static void test_prefix(void **state) {
        char directory[100];

        (void) snprintf(directory, sizeof(directory), "%s/p-.service.d", systemd.directory);
        assert_ok(mkdir(directory, 0755));
        write_file("p-.service.d/x.conf", SECTION("5ms"));
        add_unit("p-one.service", "[Service]\n");
        (void) snprintf(systemd.units[0].drop_in, sizeof(systemd.units[0].drop_in), "%s/x.conf",
                        directory);
        add_unit("q.service", "[Service]\n");
        reload();
        assert_state("p-one.service/a", BINDING_WAITING);
        assert_int_equal(systemd.n_questions, 1);
}

static void test_alias(void **state) {
        FakeUnit *unit = add_unit("real.service", "[Service]\n"), *alias;

        alias = add_unit("alias.service", SECTION("5ms"));
        (void) strcpy(unit->drop_in, alias->fragment);
        *alias = *unit;
        alias->name = "alias.service";
        reload();
        assert_state("real.service/a", BINDING_WAITING);
        assert_null(binding("alias.service/a"));
        alias->cgroup = unit->cgroup = "/";
        unit_changes("real.service");
        assert_state("real.service/a", BINDING_ACTIVE);
}

static void test_program(void **state) {
        FakeUnit *unit = add_unit("x.service", "[X-Tlob a]\nFunction=f\nBudgetSec=1s\n");

        reload();
        assert_state("x.service/a", BINDING_FAILED);
        assert_non_null(strstr(binding("x.service/a")->measurement.reason, "has no ExecStart="));
        unit->programs[0] = "/bin/sh";
        unit_changes("x.service");
        assert_non_null(strstr(binding("x.service/a")->measurement.reason, "runs other code"));
        unit->programs[1] = "/bin/true";
        unit_changes("x.service");
        assert_non_null(strstr(binding("x.service/a")->measurement.reason, "several programs"));
        unit->programs[0] = "/nonexistent/program";
        unit->programs[1] = NULL;
        unit_changes("x.service");
        assert_state("x.service/a", BINDING_WAITING);
        unit->cgroup = "/";
        unit_changes("x.service");
        assert_state("x.service/a", BINDING_FAILED);
}

/* systemd does not answer as it should: what is known stays, and the rest goes on. */
static void test_broken(void **state) {
        add_unit("x.service", SECTION("5ms"));
        reload();
        assert_state("x.service/a", BINDING_WAITING);
        systemd.is_broken = true;
        fixture_write(systemd.fixture, 0, "bindings.d/b.conf",
                      "[Binding b]\nExecutable=libc.so.6\nFunction=fsync\nBudgetSec=1ms\n");
        reload();
        assert_state("x.service/a", BINDING_WAITING);
        assert_state("b", BINDING_ACTIVE);
}

/* As long as units are not asked about, one look is enough for all. */
static void test_reloads_at_once(void **state) {
        add_unit("x.service", SECTION("5ms"));
        for (int i = 0; i < 3; i++)
                assert_int_equal(manager_reload(systemd.fixture->manager), 1);
        fixture_run(systemd.fixture);
        assert_state("x.service/a", BINDING_WAITING);
        assert_int_equal(systemd.n_questions, 1);
}

static bool reload_asks(void) {
        unsigned before = systemd.n_questions;

        reload();
        return systemd.n_questions > before;
}

/* systemd is asked when it could answer otherwise than before, and then only. */
static void test_nothing_new(void **state) {
        char path[128];

        add_unit("x.service", SECTION("5ms"));
        assert_true(reload_asks());
        assert_false(reload_asks());
        write_file("other.service", "[Service]\n");
        assert_true(reload_asks());
        write_file("other.service", "[Service]\nType=simple\n");
        assert_true(reload_asks());
        assert_false(reload_asks());

        (void) snprintf(path, sizeof(path), "%s/masked.service", systemd.directory);
        assert_ok(symlink("/dev/null", path));
        assert_true(reload_asks());
        assert_ok(unlink(path));
        assert_true(reload_asks());
        assert_false(reload_asks());

        systemd.is_broken = true;
        reload();
        systemd.is_broken = false;
        assert_true(reload_asks());
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "Reloading", "b", 1);
        assert_true(reload_asks());
        assert_state("x.service/a", BINDING_WAITING);
}

/* Calls that come while it is going on are answered, too. */
static void test_joined_reloads(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        if (geteuid() != 0)
                skip();
        add_unit("x.service", SECTION("5ms"));
        assert_true(manager_reload(systemd.fixture->manager) > 0);
        assert_ok(fixture_call(systemd.fixture, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Reload",
                               &error, NULL, NULL));
        assert_state("x.service/a", BINDING_WAITING);
        fixture_run(systemd.fixture);
        assert_false(manager_is_reloading(systemd.fixture->manager));
}

/* That its probes are the same does not make it right. */
static void test_a_budget_is_taken_away(void **state) {
        FakeUnit *unit = add_unit("x.service", SECTION("5ms"));

        unit->cgroup = "/";
        reload();
        assert_state("x.service/a", BINDING_ACTIVE);
        write_file("x.service", SECTION(""));
        reload();
        assert_state("x.service/a", BINDING_FAILED);
        assert_non_null(
                strstr(binding("x.service/a")->measurement.reason, "BudgetSec= is missing"));
        write_file("x.service", SECTION("5ms"));
        reload();
        assert_state("x.service/a", BINDING_ACTIVE);
}

static void test_set_budget(void **state) {
        _cleanup_free_ char *error = NULL;
        Manager *m = systemd.fixture->manager;

        add_unit("x.service", SECTION("5ms"));
        reload();
        assert_ok(manager_set_budget(m, "x.service/a", 9000000, 0, &error));
        reload();
        assert_int_equal(binding("x.service/a")->budget_ns[TLOB_BUDGET_TOTAL], 9000000);
        unit_changes("x.service");
        assert_int_equal(binding("x.service/a")->budget_ns[TLOB_BUDGET_TOTAL], 9000000);
        /* Also when systemd forgets the unit meanwhile. */
        systemd.units[0].state = "masked";
        unit_changes("x.service");
        assert_null(binding("x.service/a"));
        systemd.units[0].state = "loaded";
        unit_changes("x.service");
        assert_int_equal(binding("x.service/a")->budget_ns[TLOB_BUDGET_TOTAL], 9000000);
        assert_ok(manager_set_budget(m, "x.service/a", 10000000, 0, &error));
        unit_changes("x.service");
        systemd.units[0].state = "masked";
        unit_changes("x.service");
        systemd.units[0].state = "loaded";
        unit_changes("x.service");
        assert_int_equal(binding("x.service/a")->budget_ns[TLOB_BUDGET_TOTAL], 10000000);
        assert_int_equal(manager_remove_binding(m, "x.service/a", &error), -EPERM);
        assert_non_null(strstr(error, "units/x.service:1"));
}

#define USER_MANAGER "/user.slice/user-1000.slice/user@1000.service"

static int setup_user(void **state) {
        return fake_systemd_setup_below(state, USER_MANAGER);
}

/* Where a unit will be, and which unit a task is in. */
static void test_units_of_a_user(void **state) {
        static const struct {
                const char *cgroup, *unit;
        } cases[] = {
                { USER_MANAGER "/app.slice/y.service/worker", "y.service" },
                { USER_MANAGER "/app.slice/app-z.slice/z.scope", "z.scope" },
                /* Not his: the binding's own is all that is known. */
                { "/system.slice/y.service", "x.service" },
        };
        Report report = { .type = REPORT_VIOLATION, .comm = "app" };
        Manager *m = systemd.fixture->manager;
        FakeUnit *unit = add_unit("x.service", SECTION("5ms"));

        reload();
        assert_string_equal(binding("x.service/a")->cgroup.path,
                            USER_MANAGER "/system.slice/x.service");
        unit->cgroup = "/";
        unit_changes("x.service");
        assert_state("x.service/a", BINDING_ACTIVE);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                report.id = i + 1;
                report.cgroup_path = cases[i].cgroup;
                fake_report(&report);
                fixture_run(systemd.fixture);
                assert_non_null(manager_find_violation(m, i + 1));
                assert_string_equal(manager_find_violation(m, i + 1)->unit, cases[i].unit);
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_systemd_setup, fixture_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_life),
                TEST(test_a_unit_that_crashes),
                TEST(test_ends_that_are_no_matter_of_probes),
                TEST(test_reload),
                TEST(test_states),
                TEST(test_instances),
                TEST(test_spares),
                TEST(test_spares_change),
                TEST(test_spares_give_way),
                TEST(test_prefix),
                TEST(test_alias),
                TEST(test_program),
                TEST(test_broken),
                TEST(test_reloads_at_once),
                TEST(test_nothing_new),
                TEST(test_joined_reloads),
                TEST(test_a_budget_is_taken_away),
                TEST(test_set_budget),
                cmocka_unit_test_setup_teardown(test_units_of_a_user, setup_user, fixture_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
