/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * All units that matter, and systemd's signals about them. Watched are units that a binding names;
 * followed are those that have sections for us in their own files.
 *
 * A unit that is only one of many that a file is for (an instance of a template, a service below
 * service.d) is followed from when systemd tells that it changed or had a job, until systemd
 * unloads it. UnitNew is no reason to ask: see unit.c.
 *
 * One match for the changes of all units, because the bus daemon allows no more than 512 matches.
 */

#include <search.h>

#include "cgroup.h"
#include "unit/internal.h"

static int compare_units(const void *a, const void *b) {
        return strcmp(((const Unit *) a)->name, ((const Unit *) b)->name);
}

Unit *units_find(const Units *units, const char *name) {
        Unit key = { .name = (char *) name }, **found;

        found = tfind(&key, &units->table, compare_units);
        return found ? *found : NULL;
}

int units_get_or_make(Units *units, const char *name, Unit **ret) {
        _cleanup_(unit_freep) Unit *unit = NULL;
        int r;

        *ret = units_find(units, name);
        if (*ret)
                return 0;
        r = unit_new(units, name, &unit);
        if (r < 0)
                return r;
        if (!tsearch(unit, &units->table, compare_units))
                return -ENOMEM;
        *ret = TAKE_PTR(unit);
        return 0;
}

void units_drop(Units *units, Unit *unit) {
        if (unit->n_watchers > 0 || unit->followed || unit->queued || unit->n_questions > 0)
                return;
        tdelete(unit, &units->table, compare_units);
        unit_free(unit);
}

int units_follow(Units *units, const char *name, bool own_files) {
        Unit *unit;
        int r;

        r = units_get_or_make(units, name, &unit);
        if (r < 0)
                return r;
        if (unit->round != units->round)
                unit->own_files = false;
        unit->own_files |= own_files;
        unit->followed = true;
        unit->round = units->round;
        return unit_ask(unit);
}

static void ask_aliases(const void *node, VISIT which, void *userdata) {
        Unit *unit = *(Unit *const *) node;

        if ((which == postorder || which == leaf) && unit->info.name &&
            streq(unit->info.name, userdata) && !streq(unit->name, userdata))
                (void) unit_ask(unit);
}

void units_changed(Units *units, const char *name) {
        Unit *unit = units_find(units, name);

        if (unit_files_match(units->files, name))
                (void) units_follow(units, name, unit && unit->own_files);
        else if (unit)
                (void) unit_ask(unit);
        twalk_r(units->table, ask_aliases, (char *) name);
}

int units_expect(Units *units, const char *name) {
        const Unit *unit = units_find(units, name);

        if (!unit_files_match(units->files, name))
                return 0;
        return units_follow(units, name, unit && unit->own_files);
}

static int on_properties_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *path = sd_bus_message_get_path(m);
        _cleanup_free_ char *name = NULL;

        if (sd_bus_path_decode(path, SYSTEMD_UNIT_PATH, &name) > 0)
                units_changed(userdata, name);
        return 0;
}

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *job, *unit, *result;

        if (sd_bus_message_read(m, "uoss", NULL, &job, &unit, &result) < 0)
                return 0;
        units_changed(userdata, unit);
        unit_start_job_removed(userdata, job, unit, result);
        return 0;
}

static int on_unit_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Units *units = userdata;
        const char *name;
        unsigned level;
        uint64_t id;
        Unit *unit;

        if (sd_bus_message_read(m, "so", &name, NULL) < 0)
                return 0;
        /* When it reads its files again, systemd forgets all units for a moment. */
        if (units->is_reloading)
                return 0;
        unit = units_find(units, name);
        if (!unit)
                return 0;

        /*
         * It runs again already. Unless that cgroup is not systemd's, which loads it for each
         * question, and unloads it again.
         */
        if (unit->info.cgroup_path && units->cgroup_root >= 0 &&
            cgroup_path_get_id(units->cgroup_root, unit->info.cgroup_path, &id, &level) >= 0 &&
            id != unit->gone_with) {
                unit->gone_with = id;
                return unit_ask(unit);
        }
        if (unit->info.cgroup_id)
                unit_set_stopped(unit);
        /* One with files of its own stays, to be told of as one that does not run. */
        if (unit->followed && !unit->own_files) {
                unit->n_watchers++;
                unit->followed = false;
                units->handlers->files(name, NULL, units->userdata);
                units_unwatch(units, name);
        }
        return 0;
}

static int on_reloading(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Units *units = userdata;
        int active;

        if (sd_bus_message_read(m, "b", &active) < 0)
                return 0;
        units->is_reloading = active;
        units->is_stale = true;
        if (!active)
                units->handlers->reloaded(units->userdata);
        return 0;
}

static int on_unit_files_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Units *units = userdata;

        units->is_stale = true;
        units->handlers->reloaded(units->userdata);
        return 0;
}

/* Without it systemd sends no signals. That it is not there is no error. */
static int subscribe(Units *units) {
        return sd_bus_call_method_async(units->bus, NULL, SYSTEMD_NAME, SYSTEMD_PATH,
                                        SYSTEMD_MANAGER, "Subscribe", NULL, NULL, NULL);
}

/* That of the root is "/" or nothing: what is below it begins with a slash. */
static int on_cgroup(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Units *units = userdata;
        const char *path;

        if (sd_bus_message_is_method_error(m, NULL) || sd_bus_message_read(m, "v", "s", &path) < 0)
                return 0;
        (void) free_and_strdup(&units->cgroup_path, streq(path, "/") ? "" : path);
        return 0;
}

/* Before anything is asked about units: answers come in order. */
static int ask_cgroup(Units *units) {
        return sd_bus_call_method_async(units->bus, NULL, SYSTEMD_NAME, SYSTEMD_PATH,
                                        BUS_PROPERTIES, "Get", on_cgroup, units, "ss",
                                        SYSTEMD_MANAGER, "ControlGroup");
}

/* systemd has come back to the bus, after a daemon-reexec. */
static int on_name_owner_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Units *units = userdata;
        const char *owner;

        if (sd_bus_message_read(m, "sss", NULL, NULL, &owner) < 0 || *owner == '\0')
                return 0;
        units->is_reloading = false;
        units->is_stale = true;
        unit_starts_forget(units);
        (void) subscribe(units);
        units->handlers->reloaded(units->userdata);
        return 0;
}

static int listen(Units *units) {
        static const struct {
                const char *match;
                sd_bus_message_handler_t handler;
        } matches[] = {
                { "type='signal',sender='" SYSTEMD_NAME "',path_namespace='" SYSTEMD_UNIT_PATH
                  "',interface='" BUS_PROPERTIES "',member='PropertiesChanged',arg0='" SYSTEMD_UNIT
                  "'",
                  on_properties_changed },
                { "type='signal',sender='" SYSTEMD_NAME "',path='" SYSTEMD_PATH
                  "',interface='" SYSTEMD_MANAGER "',member='JobRemoved'",
                  on_job_removed },
                { "type='signal',sender='" SYSTEMD_NAME "',path='" SYSTEMD_PATH
                  "',interface='" SYSTEMD_MANAGER "',member='UnitRemoved'",
                  on_unit_removed },
                { "type='signal',sender='" SYSTEMD_NAME "',path='" SYSTEMD_PATH
                  "',interface='" SYSTEMD_MANAGER "',member='Reloading'",
                  on_reloading },
                { "type='signal',sender='" SYSTEMD_NAME "',path='" SYSTEMD_PATH
                  "',interface='" SYSTEMD_MANAGER "',member='UnitFilesChanged'",
                  on_unit_files_changed },
                { "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                  "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" SYSTEMD_NAME
                  "'",
                  on_name_owner_changed },
        };

        int r;

        for (size_t i = 0; i < ELEMENTSOF(matches); i++) {
                r = sd_bus_add_match_async(units->bus, NULL, matches[i].match, matches[i].handler,
                                           NULL, units);
                if (r < 0)
                        return r;
        }
        r = ask_cgroup(units);
        return r < 0 ? r : subscribe(units);
}

int units_new(sd_bus *bus, const UnitsHandlers *handlers, void *userdata, Units **ret) {
        _cleanup_(units_freep) Units *units = NULL;
        int r;

        units = calloc(1, sizeof(*units));
        if (!units)
                return -ENOMEM;
        *units = (Units) {
                .bus = bus ? sd_bus_ref(bus) : NULL,
                .cgroup_root = cgroup_open_root(),
                .handlers = handlers,
                .userdata = userdata,
                .is_stale = true,
        };
        r = unit_files_new(&units->files);
        if (r < 0)
                return r;
        if (bus) {
                r = listen(units);
                if (r < 0)
                        return r;
        }

        *ret = TAKE_PTR(units);
        return 0;
}

static void free_unit(void *unit) {
        unit_free(unit);
}

Units *units_free(Units *units) {
        if (!units)
                return NULL;

        refresh_done(units);
        unit_starts_done(units);
        tdestroy(units->table, free_unit);
        unit_files_free(units->files);
        free(units->cgroup_path);
        safe_close(units->cgroup_root);
        sd_bus_unref(units->bus);
        free(units);
        return NULL;
}

int units_watch(Units *units, const char *name) {
        Unit *unit;
        int r;

        r = units_get_or_make(units, name, &unit);
        if (r < 0)
                return r;
        if (unit->n_watchers++ == 0 && !unit->info.name)
                return unit_ask(unit);
        return 0;
}

void units_unwatch(Units *units, const char *name) {
        Unit *unit = units_find(units, name);

        if (unit && --unit->n_watchers == 0)
                units_drop(units, unit);
}

const UnitInfo *units_get(const Units *units, const char *name) {
        const Unit *unit = units_find(units, name);

        return unit && unit->info.name ? &unit->info : NULL;
}

bool units_was_asked(const Units *units, const char *name) {
        const Unit *unit = units_find(units, name);

        return unit && (unit->info.name || unit->in_vain);
}

const char *units_get_cgroup(const Units *units) {
        return units->cgroup_path ?: "";
}

void units_answered(Units *units) {
        refresh_answered(units);
}

bool units_file_has_sections(Units *units, const char *path) {
        return unit_files_has_sections(units->files, path);
}

typedef struct ForEach {
        int (*f)(const UnitInfo *info, void *userdata);
        void *userdata;
        int r;
} ForEach;

static void visit(const void *node, VISIT which, void *userdata) {
        const Unit *unit = *(const Unit *const *) node;
        ForEach *each = userdata;

        if ((which != postorder && which != leaf) || each->r != 0 || !unit->followed ||
            !unit->info.name || !streq(unit->name, unit->info.name))
                return;
        each->r = each->f(&unit->info, each->userdata);
}

int units_for_each(Units *units, int (*f)(const UnitInfo *info, void *userdata), void *userdata) {
        ForEach each = { .f = f, .userdata = userdata };

        twalk_r(units->table, visit, &each);
        return each.r;
}
