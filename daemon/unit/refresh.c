/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The look for units with sections for us, at the start and whenever systemd has read its files
 * again: systemd is asked where units are, these directories are looked through (unit/files.c), and
 * systemd is asked about each unit that something there can be for, whether it is loaded or not;
 * where a file is for all units of a type, about those that are loaded. A machine on which nobody
 * has written a section is done after the second step.
 *
 * systemd is not asked when it has not read its files again, and none of them has changed, since it
 * was asked last.
 *
 * Each step is an answer or a turn of the event loop. When systemd does not answer, what was known
 * stays.
 */

#include <search.h>

#include "base/strings.h"
#include "base/unit-name.h"
#include "binding/binding.h"
#include "unit/internal.h"

/* Entries of directories in one turn of the event loop: about a millisecond. */
#define ENTRIES_PER_TURN 64

void refresh_done(Units *units) {
        units->question = sd_bus_slot_unref(units->question);
        units->step = sd_event_source_disable_unref(units->step);
        units->state = REFRESH_IDLE;
}

static void finish(Units *units, int error) {
        refresh_done(units);
        if (error < 0)
                units->is_stale = true;
        units->handlers->refreshed(error, units->userdata);
}

/* Units that had sections before, and have none now. */
typedef struct Lost {
        const Units *units;
        Unit *unit;
} Lost;

static void find_lost(const void *node, VISIT which, void *userdata) {
        Unit *unit = *(Unit *const *) node;
        Lost *lost = userdata;

        if ((which == postorder || which == leaf) && unit->followed &&
            unit->round != lost->units->round)
                lost->unit = unit;
}

/* The tree must not change while it is walked. There are few of them. */
static void forget_lost(Units *units) {
        for (;;) {
                Lost lost = { .units = units };

                twalk_r(units->table, find_lost, &lost);
                if (!lost.unit)
                        return;
                lost.unit->followed = false;
                units_drop(units, lost.unit);
        }
}

void refresh_answered(Units *units) {
        if (units->state != REFRESH_UNITS || units->first_queued || units->n_asking > 0)
                return;
        forget_lost(units);
        finish(units, units->error);
}

/* A unit in systemd's list: its name, and the rest, which is not looked at. */
#define LISTED_REST  "sssssouso"
#define LISTED_TYPES "s" LISTED_REST

/* Several files can be for a unit: it is asked about once. */
static int follow_once(Units *units, const char *name, bool own_files) {
        Unit *unit = units_find(units, name);

        if (!unit || !unit->followed || unit->round != units->round)
                return units_follow(units, name, own_files);
        unit->own_files |= own_files;
        return 0;
}

static int follow_listed(Units *units, sd_bus_message *m) {
        int r;

        r = sd_bus_message_enter_container(m, 'a', "(" LISTED_TYPES ")");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'r', LISTED_TYPES)) > 0) {
                const char *name;

                r = sd_bus_message_read(m, "s", &name);
                if (r >= 0)
                        r = sd_bus_message_skip(m, LISTED_REST);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r >= 0 && unit_files_match(units->files, name))
                        r = follow_once(units, name, false);
                if (r < 0)
                        return r;
        }
        return r;
}

static int follow_named(Units *units) {
        const UnitPattern *patterns;
        size_t n;
        int r = 0;

        patterns = unit_files_patterns(units->files, &n);
        for (size_t i = 0; i < n && r >= 0; i++)
                if (patterns[i].name)
                        r = follow_once(units, patterns[i].name, true);
        return r;
}

/* Before they are started for the first time; a template by its stand-in. */
static int follow_found(const char *name, void *userdata) {
        _cleanup_free_ char *stand_in = NULL;

        if (!unit_name_is_template(name))
                return follow_once(userdata, name, true);
        stand_in = unit_stand_in_for(name);
        return stand_in ? follow_once(userdata, stand_in, true) : -ENOMEM;
}

/* Watched units can be others by now, too: an alias can have moved. */
static void ask_watched(const void *node, VISIT which, void *userdata) {
        Unit *unit = *(Unit *const *) node;

        if ((which == postorder || which == leaf) && unit->n_watchers > 0 && !unit->followed)
                (void) unit_ask(unit);
}

static void begin_units(Units *units, sd_bus_message *listed) {
        int r = listed ? follow_listed(units, listed) : 0;

        if (r >= 0)
                r = follow_named(units);
        if (r >= 0)
                r = unit_files_for_each(units->files, follow_found, units);
        if (r < 0) {
                finish(units, r);
                return;
        }
        twalk_r(units->table, ask_watched, NULL);
        units->state = REFRESH_UNITS;
        refresh_answered(units);
}

static int on_listed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Units *units = userdata;

        units->question = sd_bus_slot_unref(units->question);
        if (sd_bus_message_is_method_error(m, NULL))
                finish(units, -sd_bus_message_get_errno(m));
        else
                begin_units(units, m);
        return 0;
}

/* "foo@*.service" for each pattern that is for many. Returns how many there are. */
static int append_patterns(Units *units, sd_bus_message *m) {
        const UnitPattern *patterns;
        size_t n, many = 0;
        int r;

        r = sd_bus_message_open_container(m, 'a', "s");
        if (r < 0)
                return r;
        patterns = unit_files_patterns(units->files, &n);
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *glob = NULL;

                if (patterns[i].name)
                        continue;
                many++;
                if (asprintf(&glob, "%s*%s", patterns[i].prefix, patterns[i].suffix) < 0) {
                        glob = NULL;
                        return -ENOMEM;
                }
                r = sd_bus_message_append(m, "s", glob);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_close_container(m);
        return r < 0 ? r : (int) many;
}

/* Returns 0 if there is nothing to ask. */
static int ask_names(Units *units) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(units->bus, &m, SYSTEMD_NAME, SYSTEMD_PATH,
                                           SYSTEMD_MANAGER, "ListUnitsByPatterns");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "as", 0);
        if (r < 0)
                return r;
        r = append_patterns(units, m);
        if (r <= 0)
                return r;
        units->state = REFRESH_NAMES;
        r = sd_bus_call_async(units->bus, &units->question, m, on_listed, units, 0);
        return r < 0 ? r : 1;
}

static int on_step(sd_event_source *source, void *userdata) {
        Units *units = userdata;
        int r;

        r = unit_files_step(units->files, ENTRIES_PER_TURN);
        if (r > 0)
                return 0;
        units->step = sd_event_source_disable_unref(units->step);
        if (r >= 0 && !unit_files_take_changed(units->files) && !units->is_stale) {
                finish(units, 0);
                return 0;
        }
        units->is_stale = false;
        if (r >= 0)
                r = ask_names(units);
        if (r < 0)
                finish(units, r);
        else if (r == 0)
                begin_units(units, NULL);
        return 0;
}

static int begin_files(Units *units, sd_bus_message *m) {
        _cleanup_(strings_freep) char **directories = NULL;
        int r;

        r = sd_bus_message_enter_container(m, 'v', "as");
        if (r < 0)
                return r;
        r = sd_bus_message_read_strv(m, &directories);
        if (r < 0)
                return r;
        r = unit_files_begin(units->files, (const char *const *) directories);
        if (r < 0)
                return r;

        units->state = REFRESH_FILES;
        r = sd_event_add_defer(sd_bus_get_event(units->bus), &units->step, on_step, units);
        if (r < 0)
                return r;
        (void) sd_event_source_set_priority(units->step, SD_EVENT_PRIORITY_IDLE);
        return sd_event_source_set_enabled(units->step, SD_EVENT_ON);
}

static int on_directories(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Units *units = userdata;
        int r;

        units->question = sd_bus_slot_unref(units->question);
        r = sd_bus_message_is_method_error(m, NULL) ? -sd_bus_message_get_errno(m)
                                                    : begin_files(units, m);
        if (r < 0)
                finish(units, r);
        return 0;
}

int units_refresh(Units *units) {
        int r;

        if (units->state == REFRESH_NAMES || units->state == REFRESH_UNITS)
                return -EALREADY;
        if (!units->bus)
                return -EHOSTUNREACH;

        refresh_done(units);
        units->round++;
        units->error = 0;
        r = sd_bus_call_method_async(units->bus, &units->question, SYSTEMD_NAME, SYSTEMD_PATH,
                                     BUS_PROPERTIES, "Get", on_directories, units, "ss",
                                     SYSTEMD_MANAGER, "UnitPath");
        if (r < 0)
                return r;
        units->state = REFRESH_DIRECTORIES;
        return 0;
}
