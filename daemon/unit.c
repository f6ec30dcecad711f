/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One match and one question per unit: systemd tells that something about a unit changed, and is
 * then asked for its ControlGroup, because that property comes without a change signal. Nothing
 * waits for an answer: all calls are asynchronous, and the handler is called from the event loop.
 *
 * What a unit's name means to bindings is the manager's business. Only units of the system manager
 * are seen, since only that one is asked.
 */

#include "unit.h"

#include "cgroup.h"

#define SYSTEMD_NAME      "org.freedesktop.systemd1"
#define SYSTEMD_PATH      "/org/freedesktop/systemd1"
#define SYSTEMD_UNIT_PATH "/org/freedesktop/systemd1/unit"

typedef struct Unit Unit;

struct Unit {
        Units *units;
        char *name;
        char *path; /* on D-Bus */
        unsigned n_watchers;
        uint64_t cgroup_id;
        unsigned level;
        sd_bus_slot *changes;
        sd_bus_slot *question;
        Unit *next;
};

struct Units {
        sd_bus *bus;
        int cgroup_root;
        UnitsHandler handler;
        void *userdata;
        Unit *first;
};

/* The D-Bus interface of each type of unit that has processes of its own. */
static const struct {
        const char *suffix;
        const char *interface;
} unit_types[] = {
        { ".service", "org.freedesktop.systemd1.Service" },
        { ".scope", "org.freedesktop.systemd1.Scope" },
        { ".slice", "org.freedesktop.systemd1.Slice" },
};

static const char *unit_interface(const char *name) {
        const char *suffix = strrchr(name, '.');

        for (size_t i = 0; suffix && i < ELEMENTSOF(unit_types); i++)
                if (streq(suffix, unit_types[i].suffix))
                        return unit_types[i].interface;
        return NULL;
}

bool unit_name_is_template(const char *name) {
        const char *at = strchr(name, '@');

        return at && at[1] == '.' && at + 1 == strrchr(name, '.');
}

static Unit *unit_free(Unit *unit) {
        if (!unit)
                return NULL;

        sd_bus_slot_unref(unit->question);
        sd_bus_slot_unref(unit->changes);
        free(unit->path);
        free(unit->name);
        free(unit);
        return NULL;
}
DEFINE_CLEANUP(Unit, unit_free);

static void unit_set_cgroup(Unit *unit, const char *path) {
        Units *units = unit->units;
        uint64_t id = 0;
        unsigned level = 0;

        /* The root is never a unit's own: systemd says "/" for the slice of all slices. */
        if (path && *path && units->cgroup_root >= 0 &&
            cgroup_path_get_id(units->cgroup_root, path, &id, &level) < 0)
                id = 0;

        if (id == unit->cgroup_id)
                return;
        unit->cgroup_id = id;
        unit->level = level;
        units->handler(unit->name, id, level, units->userdata);
}

static int on_cgroup(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Unit *unit = userdata;
        const char *path = NULL;

        unit->question = sd_bus_slot_unref(unit->question);
        if (!sd_bus_message_is_method_error(m, NULL) &&
            sd_bus_message_enter_container(m, 'v', "s") >= 0)
                (void) sd_bus_message_read(m, "s", &path);
        unit_set_cgroup(unit, path);
        return 0;
}

/* A new question replaces the one that is under way. */
static int unit_ask(Unit *unit) {
        unit->question = sd_bus_slot_unref(unit->question);
        return sd_bus_call_method_async(unit->units->bus, &unit->question, SYSTEMD_NAME, unit->path,
                                        "org.freedesktop.DBus.Properties", "Get", on_cgroup, unit,
                                        "ss", unit_interface(unit->name), "ControlGroup");
}

static int on_change(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        (void) unit_ask(userdata);
        return 0;
}

static int unit_new(Units *units, const char *name, Unit **ret) {
        _cleanup_(unit_freep) Unit *unit = NULL;
        int r;

        unit = calloc(1, sizeof(*unit));
        if (!unit)
                return -ENOMEM;
        unit->units = units;
        unit->name = strdup(name);
        if (!unit->name)
                return -ENOMEM;

        if (units->bus) {
                r = sd_bus_path_encode(SYSTEMD_UNIT_PATH, name, &unit->path);
                if (r < 0)
                        return r;
                r = sd_bus_match_signal_async(units->bus, &unit->changes, SYSTEMD_NAME, unit->path,
                                              "org.freedesktop.DBus.Properties",
                                              "PropertiesChanged", on_change, NULL, unit);
                if (r < 0)
                        return r;
                r = unit_ask(unit);
                if (r < 0)
                        return r;
        }

        *ret = TAKE_PTR(unit);
        return 0;
}

int units_new(sd_bus *bus, UnitsHandler handler, void *userdata, Units **ret) {
        _cleanup_(units_freep) Units *units = NULL;
        int r;

        units = calloc(1, sizeof(*units));
        if (!units)
                return -ENOMEM;
        *units = (Units){
                .bus = bus ? sd_bus_ref(bus) : NULL,
                .cgroup_root = cgroup_open_root(),
                .handler = handler,
                .userdata = userdata,
        };

        /* Without this systemd sends no signals. That it is not there is no error. */
        if (bus) {
                r = sd_bus_call_method_async(bus, NULL, SYSTEMD_NAME, SYSTEMD_PATH,
                                             "org.freedesktop.systemd1.Manager", "Subscribe", NULL,
                                             NULL, NULL);
                if (r < 0)
                        return r;
        }

        *ret = TAKE_PTR(units);
        return 0;
}

Units *units_free(Units *units) {
        if (!units)
                return NULL;

        while (units->first) {
                Unit *unit = units->first;

                units->first = unit->next;
                unit_free(unit);
        }
        safe_close(units->cgroup_root);
        sd_bus_unref(units->bus);
        free(units);
        return NULL;
}

/* Where the pointer to the unit of that name is, or would be. */
static Unit **units_find(Units *units, const char *name) {
        Unit **p;

        for (p = &units->first; *p; p = &(*p)->next)
                if (streq((*p)->name, name))
                        break;
        return p;
}

int units_watch(Units *units, const char *name) {
        Unit **p = units_find(units, name);
        int r;

        if (!*p) {
                r = unit_new(units, name, p);
                if (r < 0)
                        return r;
        }
        (*p)->n_watchers++;
        return 0;
}

void units_unwatch(Units *units, const char *name) {
        Unit **p = units_find(units, name), *unit = *p;

        if (!unit || --unit->n_watchers > 0)
                return;
        *p = unit->next;
        unit_free(unit);
}

uint64_t units_get_cgroup(const Units *units, const char *name, unsigned *ret_level) {
        const Unit *unit = *units_find((Units *) units, name);

        if (!unit || !unit->cgroup_id)
                return 0;
        *ret_level = unit->level;
        return unit->cgroup_id;
}
