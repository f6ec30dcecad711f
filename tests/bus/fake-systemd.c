/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * It answers on the other end of the bus, and sends signals when it is told to, also in an order
 * that systemd itself would not have.
 */

#include "fake-systemd.h"

#include <stdarg.h>
#include <sys/stat.h>

#include "test.h"

FakeSystemd systemd;

static int on_subscribe(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return sd_bus_reply_method_return(m, NULL);
}

static int get_path(sd_bus *bus, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        if (systemd.is_broken)
                return -EIO;
        return sd_bus_message_append(reply, "as", 1, systemd.directory);
}

static int get_cgroup(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", systemd.cgroup);
}

/* All units, whatever the patterns: too many are no harm. */
static int on_list(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

        assert_true(sd_bus_message_new_method_return(m, &reply) >= 0);
        assert_true(sd_bus_message_open_container(reply, 'a', "(ssssssouso)") >= 0);
        for (size_t i = 0; i < systemd.n; i++)
                assert_true(sd_bus_message_append(reply, "(ssssssouso)", systemd.units[i].id, "",
                                                  "loaded", "active", "running", "", "/", 0, "",
                                                  "/") >= 0);
        assert_true(sd_bus_message_close_container(reply) >= 0);
        return sd_bus_send(NULL, reply, NULL);
}

static int on_start(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *unit, *mode;
        char job[32];

        assert_true(sd_bus_message_read(m, "ss", &unit, &mode) > 0);
        assert_string_equal(mode, "fail");
        if (systemd.starts_nothing)
                return sd_bus_error_setf(error, SYSTEMD ".NoSuchUnit", "Unit %s not found.", unit);
        if (systemd.starts_late)
                return sd_bus_error_set(error, SD_BUS_ERROR_TIMEOUT, "Method call timed out");
        systemd.n_started += !streq(systemd.started, unit);
        (void) snprintf(systemd.started, sizeof(systemd.started), "%s", unit);
        (void) snprintf(job, sizeof(job), "/job/%u", systemd.n_started);
        return sd_bus_reply_method_return(m, "o", job);
}

static int find_unit(sd_bus *bus, const char *path, const char *interface, void *userdata,
                     void **ret, sd_bus_error *error) {
        _cleanup_free_ char *name = NULL;

        if (sd_bus_path_decode(path, SYSTEMD_PATH "/unit", &name) <= 0)
                return 0;
        for (size_t i = 0; i < systemd.n; i++)
                if (streq(systemd.units[i].name, name)) {
                        *ret = &systemd.units[i];
                        return 1;
                }
        return 0;
}

static int get_unit(sd_bus *bus, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const FakeUnit *unit = userdata;

        if (streq(property, "Id"))
                systemd.n_questions++;
        if (streq(property, "DropInPaths"))
                return *unit->drop_in ? sd_bus_message_append(reply, "as", 1, unit->drop_in)
                                      : sd_bus_message_append(reply, "as", 0);
        return sd_bus_message_append(reply, "s",
                                     streq(property, "Id")             ? unit->id
                                     : streq(property, "LoadState")    ? unit->state
                                     : streq(property, "FragmentPath") ? unit->fragment
                                     : streq(property, "ControlGroup") ? unit->cgroup
                                                                       : "system.slice");
}

static int get_exec(sd_bus *bus, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const FakeUnit *unit = userdata;

        assert_true(sd_bus_message_open_container(reply, 'a', "(sasbttttuii)") >= 0);
        for (size_t i = 0; i < ELEMENTSOF(unit->programs) && unit->programs[i]; i++)
                assert_true(sd_bus_message_append(reply, "(sasbttttuii)", unit->programs[i], 1,
                                                  "argv0", 0, UINT64_C(0), UINT64_C(0), UINT64_C(0),
                                                  UINT64_C(0), 0, 0, 0) >= 0);
        return sd_bus_message_close_container(reply);
}

static int get_end(sd_bus *bus, const char *path, const char *interface, const char *property,
                   sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const FakeUnit *unit = userdata;

        if (streq(property, "ExecMainExitTimestampMonotonic"))
                return sd_bus_message_append(reply, "t", unit->end_usec);
        return sd_bus_message_append(
                reply, "i", streq(property, "ExecMainCode") ? unit->end_code : unit->end_status);
}

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Subscribe", "", "", on_subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListUnitsByPatterns", "asas", "a(ssssssouso)", on_list,
                      SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StartUnit", "ss", "o", on_start, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("UnitPath", "as", get_path, 0, 0),
        SD_BUS_PROPERTY("ControlGroup", "s", get_cgroup, 0, 0),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable unit_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Id", "s", get_unit, 0, 0),
        SD_BUS_PROPERTY("LoadState", "s", get_unit, 0, 0),
        SD_BUS_PROPERTY("FragmentPath", "s", get_unit, 0, 0),
        SD_BUS_PROPERTY("DropInPaths", "as", get_unit, 0, 0),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable service_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("ControlGroup", "s", get_unit, 0, 0),
        SD_BUS_PROPERTY("Slice", "s", get_unit, 0, 0),
        SD_BUS_PROPERTY("ExecStart", "a(sasbttttuii)", get_exec, 0, 0),
        SD_BUS_PROPERTY("ExecMainCode", "i", get_end, 0, 0),
        SD_BUS_PROPERTY("ExecMainStatus", "i", get_end, 0, 0),
        SD_BUS_PROPERTY("ExecMainExitTimestampMonotonic", "t", get_end, 0, 0),
        SD_BUS_VTABLE_END,
};

int fake_systemd_setup(void **state) {
        return fake_systemd_setup_below(state, "");
}

int fake_systemd_setup_below(void **state, const char *cgroup) {
        sd_bus *bus;

        assert_ok(fixture_setup(state));
        memset(&systemd, 0, sizeof(systemd));
        systemd.cgroup = cgroup;
        systemd.fixture = *state;
        bus = systemd.fixture->client;
        (void) snprintf(systemd.directory, sizeof(systemd.directory), "%s/units",
                        systemd.fixture->directory);
        assert_ok(mkdir(systemd.directory, 0755));
        assert_true(sd_bus_add_object_vtable(bus, NULL, SYSTEMD_PATH, SYSTEMD ".Manager",
                                             manager_vtable, NULL) >= 0);
        assert_true(sd_bus_add_fallback_vtable(bus, NULL, SYSTEMD_PATH "/unit", SYSTEMD ".Unit",
                                               unit_vtable, find_unit, NULL) >= 0);
        assert_true(sd_bus_add_fallback_vtable(bus, NULL, SYSTEMD_PATH "/unit", SYSTEMD ".Service",
                                               service_vtable, find_unit, NULL) >= 0);
        assert_ok(manager_follow_units(systemd.fixture->manager,
                                       bus_get_connection(systemd.fixture->bus)));
        fixture_run(systemd.fixture);
        return 0;
}

void write_file(const char *name, const char *text) {
        char path[200];
        FILE *f;

        (void) snprintf(path, sizeof(path), "%s/%s", systemd.directory, name);
        f = fopen(path, "we");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_ok(fclose(f));
}

FakeUnit *add_unit(const char *name, const char *text) {
        FakeUnit *unit = &systemd.units[systemd.n++];

        *unit = (FakeUnit) { .name = name, .id = name, .state = "loaded", .cgroup = "" };
        (void) snprintf(unit->fragment, sizeof(unit->fragment), "%s/%s", systemd.directory, name);
        write_file(name, text);
        return unit;
}

static void send_as(const char *sender, const char *destination, const char *path,
                    const char *interface, const char *member, const char *types, va_list ap) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_bus *bus = systemd.fixture->client;

        assert_true(sd_bus_message_new_signal(bus, &m, path, interface, member) >= 0);
        assert_true(sd_bus_message_appendv(m, types, ap) >= 0);
        assert_true(sd_bus_message_set_sender(m, sender) >= 0);
        if (destination)
                assert_true(sd_bus_message_set_destination(m, destination) >= 0);
        assert_true(sd_bus_send(bus, m, NULL) >= 0);
}

void send_signal(const char *path, const char *interface, const char *member, const char *types,
                 ...) {
        va_list ap;

        va_start(ap, types);
        send_as(SYSTEMD, NULL, path, interface, member, types, ap);
        va_end(ap);
}

void forge_signal(const char *path, const char *interface, const char *member, const char *types,
                  ...) {
        va_list ap;

        va_start(ap, types);
        send_as(":1.99", ":1.1", path, interface, member, types, ap);
        va_end(ap);
}

void unit_changes(const char *name) {
        _cleanup_free_ char *path = NULL;

        assert_true(sd_bus_path_encode(SYSTEMD_PATH "/unit", name, &path) >= 0);
        send_signal(path, "org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as",
                    SYSTEMD ".Unit", 0, 0);
        fixture_run(systemd.fixture);
}

void systemd_comes_back(void) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_bus *bus = systemd.fixture->client;

        assert_true(sd_bus_message_new_signal(bus, &m, "/org/freedesktop/DBus",
                                              "org.freedesktop.DBus", "NameOwnerChanged") >= 0);
        assert_true(sd_bus_message_append(m, "sss", SYSTEMD, "", ":1.1") >= 0);
        assert_true(sd_bus_message_set_sender(m, "org.freedesktop.DBus") >= 0);
        assert_true(sd_bus_send(bus, m, NULL) >= 0);
        fixture_run(systemd.fixture);
}

void reload(void) {
        assert_true(manager_reload(systemd.fixture->manager) >= 0);
        fixture_run(systemd.fixture);
        assert_false(manager_is_reloading(systemd.fixture->manager));
}

const Binding *binding(const char *name) {
        return binding_table_get(manager_bindings(systemd.fixture->manager), name);
}

void assert_state(const char *name, BindingState state) {
        assert_non_null(binding(name));
        assert_int_equal(binding(name)->measurement.state, state);
}
