/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A stand-in for systemd, as far as tlobctl asks it. About the files of units: it knows one unit,
 * hidden-unit.service, with a drop-in for all of its prefix. No such file exists. And about
 * tlobd.service: whether it is restarted.
 */

#include "fake-systemd.h"

#include <string.h>

#include "tlob-bus.h"

#define UNIT           "hidden-unit.service"
#define PATH           "/org/freedesktop/systemd1/unit/hidden_2dunit_2eservice"
#define TLOBD_PATH     "/org/freedesktop/systemd1/unit/tlobd_2eservice"
#define UNIT_INTERFACE "org.freedesktop.systemd1.Unit"

static int get_drop_ins(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "as", 1,
                                     "/etc/systemd/system/hidden-.service.d/50-tlob.conf");
}

static int get_false(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "b", 0);
}

static int get_text(sd_bus *bus, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        static const char *const texts[][2] = {
                { "Id", UNIT },
                { "LoadState", "loaded" },
                { "FragmentPath", "/usr/lib/systemd/system/" UNIT },
        };
        size_t i = 0;

        while (strcmp(texts[i][0], property) != 0)
                i++;
        return sd_bus_message_append(reply, "s", texts[i][1]);
}

static const sd_bus_vtable unit_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Id", "s", get_text, 0, 0),
        SD_BUS_PROPERTY("LoadState", "s", get_text, 0, 0),
        SD_BUS_PROPERTY("FragmentPath", "s", get_text, 0, 0),
        SD_BUS_PROPERTY("NeedDaemonReload", "b", get_false, 0, 0),
        SD_BUS_PROPERTY("DropInPaths", "as", get_drop_ins, 0, 0),
        SD_BUS_VTABLE_END,
};

static int on_acquired(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return 0;
}

static int get_tlobd_state(sd_bus *bus, const char *path, const char *interface,
                           const char *property, sd_bus_message *reply, void *userdata,
                           sd_bus_error *error) {
        Fake *fake = userdata;
        int r;

        r = sd_bus_message_append(reply, "s", fake->unit_state ?: "inactive");
        if (r < 0 || fake->looks == 0 || --fake->looks > 0)
                return r;
        return sd_bus_request_name_async(bus, NULL, TLOB_BUS_NAME, 0, on_acquired, NULL);
}

static int get_tlobd_load_state(sd_bus *bus, const char *path, const char *interface,
                                const char *property, sd_bus_message *reply, void *userdata,
                                sd_bus_error *error) {
        const Fake *fake = userdata;

        return sd_bus_message_append(reply, "s", fake->unit_state ? "loaded" : "not-found");
}

static const sd_bus_vtable tlobd_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("ActiveState", "s", get_tlobd_state, 0, 0),
        SD_BUS_PROPERTY("LoadState", "s", get_tlobd_load_state, 0, 0),
        SD_BUS_VTABLE_END,
};

int fake_systemd_take_away(Fake *fake, const char *unit_state, unsigned looks) {
        fake->unit_state = unit_state;
        fake->looks = looks;
        return sd_bus_release_name(fake->bus, TLOB_BUS_NAME);
}

int fake_systemd_start(Fake *fake) {
        int r;

        fake->unit_state = "active";
        r = sd_bus_add_object_vtable(fake->bus, NULL, PATH, UNIT_INTERFACE, unit_vtable, NULL);
        if (r >= 0)
                r = sd_bus_add_object_vtable(fake->bus, NULL, TLOBD_PATH, UNIT_INTERFACE,
                                             tlobd_vtable, fake);
        return r < 0 ? r : sd_bus_request_name(fake->bus, "org.freedesktop.systemd1", 0);
}
