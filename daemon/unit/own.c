/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What systemd is doing to the unit that this process belongs to. */

#include "unit/internal.h"

/* "/" if there is no job. */
static int get_job(sd_bus *bus, const char *unit, char **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *job;
        int r;

        r = sd_bus_get_property(bus, SYSTEMD_NAME, unit, SYSTEMD_UNIT, "Job", NULL, &reply, "(uo)");
        if (r >= 0)
                r = sd_bus_message_read(reply, "(uo)", NULL, &job);
        if (r < 0)
                return r;
        *ret = strdup(job);
        return *ret ? 0 : -ENOMEM;
}

static int get_unit(sd_bus *bus, char **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *unit;
        int r;

        r = sd_bus_call_method(bus, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "GetUnitByPID",
                               NULL, &reply, "u", 0);
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &unit);
        if (r < 0)
                return r;
        *ret = strdup(unit);
        return *ret ? 0 : -ENOMEM;
}

/* Else the unit is whatever this process was started in. */
static int is_its_main_process(sd_bus *bus, const char *unit) {
        uint32_t pid;
        int r;

        r = sd_bus_get_property_trivial(bus, SYSTEMD_NAME, unit, SYSTEMD_SERVICE, "MainPID", NULL,
                                        'u', &pid);
        return r < 0 ? r : pid == (uint32_t) getpid();
}

/* Does systemd start it again whenever it ends by itself? */
static int is_always_restarted(sd_bus *bus, const char *unit) {
        _cleanup_free_ char *restart = NULL;
        int r;

        r = sd_bus_get_property_string(bus, SYSTEMD_NAME, unit, SYSTEMD_SERVICE, "Restart", NULL,
                                       &restart);
        return r < 0 ? r : streq(restart, "always");
}

/* Without a job it was somebody else who has asked us to end. */
static int is_to_start(sd_bus *bus) {
        _cleanup_free_ char *unit = NULL, *job = NULL, *type = NULL;
        int r;

        r = get_unit(bus, &unit);
        if (r >= 0)
                r = is_its_main_process(bus, unit);
        if (r <= 0)
                return r;
        r = get_job(bus, unit, &job);
        if (r < 0)
                return r;
        if (streq(job, "/"))
                return is_always_restarted(bus, unit);
        r = sd_bus_get_property_string(bus, SYSTEMD_NAME, job, "org.freedesktop.systemd1.Job",
                                       "JobType", NULL, &type);
        if (r < 0)
                return r;
        return streq(type, "restart") || streq(type, "try-restart") || streq(type, "start");
}

int units_expect_restart(const Units *units) {
        uint64_t timeout;
        int r;

        if (!units->bus)
                return -ENOTCONN;
        /* It answers at once, or has other things to do. */
        (void) sd_bus_get_method_call_timeout(units->bus, &timeout);
        (void) sd_bus_set_method_call_timeout(units->bus, 2000000);
        r = is_to_start(units->bus);
        (void) sd_bus_set_method_call_timeout(units->bus, timeout);
        return r;
}
