/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Signals about units: such as systemd does not send, and such as others send in its name. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "fake-systemd.h"
#include "test.h"

static void test_odd_signals(void **state) {
        FakeUnit *unit = add_unit("x.service", SECTION("5ms"));

        reload();
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "JobRemoved", "s", "x.service");
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "UnitRemoved", "u", 1);
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "UnitRemoved", "so", "nosuch.service", "/");
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "Reloading", "s", "yes");
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "Reloading", "b", 1);
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "Reloading", "b", 1);
        send_signal(SYSTEMD_PATH "/unit", "org.freedesktop.DBus.Properties", "PropertiesChanged",
                    "sa{sv}as", SYSTEMD ".Unit", 0, 0);
        unit_changes("nosuch.service");
        /* All units are forgotten for a moment while systemd reads its files. */
        unit->cgroup = "/";
        unit_changes("x.service");
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "UnitRemoved", "so", "x.service", "/");
        fixture_run(systemd.fixture);
        assert_state("x.service/a", BINDING_ACTIVE);

        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "Reloading", "b", 0);
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "UnitFilesChanged", "");
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "Reloading", "b", 0);
        fixture_run(systemd.fixture);
        assert_false(manager_is_reloading(systemd.fixture->manager));
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "UnitRemoved", "so", "x.service", "/");
        fixture_run(systemd.fixture);
        assert_state("x.service/a", BINDING_WAITING);
}

/* Everybody may address a signal to the daemon, whatever it looks like. */
static void test_forged_signals(void **state) {
        FakeUnit *unit = add_unit("x.service", SECTION("5ms"));
        unsigned before;

        unit->cgroup = "/";
        reload();
        before = systemd.n_questions;
        forge_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "Reloading", "b", 1);
        forge_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "UnitFilesChanged", "");
        forge_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "JobRemoved", "uoss", 1, "/", "x.service",
                     "done");
        forge_signal(SYSTEMD_PATH "/unit/x_2eservice", "org.freedesktop.DBus.Properties",
                     "PropertiesChanged", "sa{sv}as", SYSTEMD ".Unit", 0, 0);
        forge_signal("/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged", "sss",
                     SYSTEMD, "", ":1.1");
        fixture_run(systemd.fixture);
        assert_false(manager_is_reloading(systemd.fixture->manager));
        assert_int_equal(systemd.n_questions, before);
        /* Nobody has said that systemd reads its files. */
        unit->cgroup = "";
        send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "UnitRemoved", "so", "x.service", "/");
        fixture_run(systemd.fixture);
        assert_state("x.service/a", BINDING_WAITING);
}

/* To ask about a unit that is not loaded makes systemd load it, and then unload it. */
static void test_a_cgroup_that_is_nobodys(void **state) {
        _cleanup_close_ int root = cgroup_open_root();
        bool made_slice;
        unsigned before;

        if (geteuid() != 0)
                skip();
        assert_true(root >= 0);
        made_slice = mkdirat(root, "system.slice", 0755) == 0;
        assert_ok(mkdirat(root, "system.slice/tlob-test.service", 0755));
        add_unit("tlob-test.service", SECTION("5ms"));
        reload();
        before = systemd.n_questions;
        for (unsigned i = 0; i < 5; i++) {
                send_signal(SYSTEMD_PATH, SYSTEMD ".Manager", "UnitRemoved", "so",
                            "tlob-test.service", "/");
                fixture_run(systemd.fixture);
        }
        assert_int_equal(systemd.n_questions, before + 1);
        assert_ok(unlinkat(root, "system.slice/tlob-test.service", AT_REMOVEDIR));
        if (made_slice)
                (void) unlinkat(root, "system.slice", AT_REMOVEDIR);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_systemd_setup, fixture_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_odd_signals),
                TEST(test_forged_signals),
                TEST(test_a_cgroup_that_is_nobodys),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
