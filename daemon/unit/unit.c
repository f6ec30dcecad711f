/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One unit, and what systemd answers about it: which files it is made of, in which cgroup it runs,
 * and which program it is. These properties come without a change signal, so they are asked for
 * whenever systemd tells that something about the unit changed. Nothing waits for an answer: all
 * calls are asynchronous.
 *
 * Asking about a unit that is not loaded makes systemd load it for a moment. It tells of that with
 * UnitNew and UnitRemoved, on which therefore nobody may be asked anything.
 *
 * Each property is asked for by itself: among "all" are some for which systemd reads whole
 * directories.
 *
 * At most ASKING_MAX units are asked about at once: the bus daemon lets no connection have more
 * than 128 calls that wait for their reply, and answers what is beyond with an error.
 */

#include "unit/unit.h"

#include <limits.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "base/unit-name.h"
#include "cgroup.h"
#include "log.h"
#include "unit/internal.h"

#define CALLS_MAX  96 /* some are left to the rest of the daemon */
#define ASKING_MAX (CALLS_MAX / UNIT_QUESTIONS_MAX)

/* The D-Bus interface of each type of unit that has processes of its own. */
static const struct {
        const char *suffix;
        const char *interface;
        bool has_exec;
        bool has_slice; /* that its own name does not tell */
} unit_types[] = {
        { ".service", SYSTEMD_SERVICE, true, true },
        { ".scope", "org.freedesktop.systemd1.Scope", false, true },
        { ".slice", "org.freedesktop.systemd1.Slice", false, false },
};

static size_t unit_type(const char *name) {
        const char *suffix = strrchr(name, '.');
        size_t i;

        for (i = 0; i < ELEMENTSOF(unit_types) - 1; i++)
                if (suffix && streq(suffix, unit_types[i].suffix))
                        break;
        return i;
}

char *unit_stand_in_for(const char *template) {
        return unit_name_make_instance(template, UNIT_STAND_IN);
}

bool unit_is_stand_in(const char *unit) {
        static const char instance[] = "@" UNIT_STAND_IN ".";
        const char *at = strchr(unit, '@');

        return at && strncmp(at, instance, strlen(instance)) == 0;
}

void unit_info_done(UnitInfo *info) {
        free(info->cgroup_path);
        free(info->root_directory);
        free(info->program);
        strings_free(info->files);
        free(info->name);
        *info = (UnitInfo) {};
}

Unit *unit_free(Unit *unit) {
        if (!unit)
                return NULL;

        for (size_t i = 0; i < UNIT_QUESTIONS_MAX; i++)
                sd_bus_slot_unref(unit->questions[i].slot);
        unit_info_done(&unit->next);
        unit_info_done(&unit->info);
        free(unit->path);
        free(unit->name);
        free(unit);
        return NULL;
}

int unit_new(Units *units, const char *name, Unit **ret) {
        _cleanup_(unit_freep) Unit *unit = NULL;
        int r;

        unit = calloc(1, sizeof(*unit));
        if (!unit)
                return -ENOMEM;
        unit->units = units;
        unit->name = strdup(name);
        if (!unit->name)
                return -ENOMEM;
        r = sd_bus_path_encode(SYSTEMD_UNIT_PATH, name, &unit->path);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(unit);
        return 0;
}

static bool is_alias(const Unit *unit) {
        return unit->info.name && !streq(unit->info.name, unit->name);
}

/* What is new is told. The state comes first: files can bring bindings that see it already. */
static void tell(Unit *unit, const UnitInfo *before) {
        const UnitInfo *now = &unit->info;
        bool other_program = !streq_empty(before->program, now->program);
        bool elsewhere = !streq_empty(before->cgroup_path, now->cgroup_path) ||
                         before->main_pid != now->main_pid ||
                         before->has_root_image != now->has_root_image ||
                         !streq_empty(before->root_directory, now->root_directory);
        Units *units = unit->units;

        if (before->name && now->end.usec > 0 && now->end.usec != before->end.usec)
                units->handlers->ended(unit->name, &now->end, units->userdata);
        if (!before->name || before->cgroup_id != now->cgroup_id || other_program || elsewhere ||
            before->is_loaded != now->is_loaded)
                units->handlers->state(unit->name, now, units->userdata);
        if (unit->followed && !is_alias(unit) &&
            (!before->name || !strings_equal(before->files, now->files) || other_program ||
             before->is_loaded != now->is_loaded))
                units->handlers->files(unit->name, now, units->userdata);
}

void unit_set_stopped(Unit *unit) {
        UnitInfo before = unit->info;

        unit->info.cgroup_id = 0;
        unit->info.main_pid = 0;
        tell(unit, &before);
}

/* An answer that says nothing about the unit, but about systemd, leaves what is known. */
static bool error_is_final(int error) {
        static const int transient[] = {
                -ETIMEDOUT, -ECONNRESET, -ENOTCONN, -EHOSTUNREACH, -ENOBUFS, -EACCES, -ENOMEM,
        };

        for (size_t i = 0; i < ELEMENTSOF(transient); i++)
                if (error == transient[i])
                        return false;
        return true;
}

static void ask_next(Units *units) {
        while (units->first_queued && units->n_asking < ASKING_MAX) {
                Unit *unit = units->first_queued;

                units->first_queued = unit->next_queued;
                unit->queued = false;
                (void) unit_ask(unit);
        }
}

/*
 * systemd cannot load its files any more, or it was masked, and what it has started goes on. So
 * does what is known of it.
 */
static bool goes_on_unloaded(const Unit *unit) {
        return !unit->next.is_loaded && unit->next.cgroup_id > 0 && unit->info.is_loaded;
}

/* What cannot be asked again stays as it was. */
static void keep_files(Unit *unit) {
        UnitInfo before = unit->info;
        const UnitInfo *next = &unit->next;

        unit->info.cgroup_id = next->cgroup_id;
        unit->info.cgroup_level = next->cgroup_level;
        unit->info.main_pid = next->main_pid;
        unit->info.end = next->end;
        if (!unit->is_kept && !is_alias(unit))
                log_warning("%s runs, but systemd cannot load it any more: its bindings stay as "
                            "they were; see 'systemctl status %s'.",
                            unit->name, unit->name);
        unit->is_kept = true;
        tell(unit, &before);
        unit_info_done(&unit->next);
}

static void take_answers(Unit *unit) {
        UnitInfo before = unit->info;
        Units *units = unit->units;

        if (!unit->next.name)
                unit->next.name = strdup(unit->name);
        /* What systemd does not read is not the unit's. */
        if (!unit->next.is_loaded)
                unit->next.files = strings_free(unit->next.files);
        unit->info = unit->next;
        unit->next = (UnitInfo) {};
        unit->is_kept = false;
        if (unit->info.cgroup_id > 0)
                unit->gone_with = 0;
        tell(unit, &before);
        unit_info_done(&before);
        /* The files of an alias are those of the unit. */
        if (unit->followed && is_alias(unit))
                (void) units_follow(units, unit->info.name, unit->own_files);
}

static void unit_finish(Unit *unit) {
        Units *units = unit->units;

        units->n_asking--;
        if (unit->error < 0 && !error_is_final(unit->error)) {
                if (units->error == 0)
                        units->error = unit->error;
                /* The next reload asks again. */
                units->is_stale = true;
                unit_info_done(&unit->next);
                unit->in_vain = true;
                if (!unit->info.name)
                        units->handlers->state(unit->name, NULL, units->userdata);
        } else if (goes_on_unloaded(unit))
                keep_files(unit);
        else
                take_answers(unit);

        /* Only now, so that it was not freed meanwhile. */
        unit->n_questions = 0;
        if (unit->again)
                (void) unit_ask(unit);
        else
                units_drop(units, unit);
        ask_next(units);
        if (units->n_asking == 0)
                units_answered(units);
}

/* The answer to one of the questions has been read, into unit->next. */
static void unit_take_answer(Unit *unit, size_t question, int error) {
        unit->questions[question].slot = sd_bus_slot_unref(unit->questions[question].slot);
        if (error < 0 && unit->error == 0)
                unit->error = error;
        if (unit->n_questions > 1)
                unit->n_questions--;
        else
                unit_finish(unit);
}

static int read_drop_ins(sd_bus_message *m, Unit *unit) {
        const char *path;
        int r;

        r = sd_bus_message_enter_container(m, 'v', "as");
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(m, 'a', "s");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, "s", &path)) > 0) {
                r = strings_append(&unit->next.files, path);
                if (r < 0)
                        return r;
        }
        return r;
}

/* It is asked for before the drop-ins, and answers come in order. */
static int read_fragment(sd_bus_message *m, Unit *unit) {
        const char *path;
        int r;

        r = sd_bus_message_read(m, "v", "s", &path);
        return r < 0 || *path == '\0' ? r : strings_append(&unit->next.files, path);
}

static int read_id(sd_bus_message *m, Unit *unit) {
        const char *id;
        int r;

        r = sd_bus_message_read(m, "v", "s", &id);
        return r < 0 ? r : free_and_strdup(&unit->next.name, id);
}

static int read_load_state(sd_bus_message *m, Unit *unit) {
        const char *state;
        int r;

        r = sd_bus_message_read(m, "v", "s", &state);
        if (r >= 0)
                unit->next.is_loaded = streq(state, "loaded");
        return r;
}

static int read_cgroup(sd_bus_message *m, Unit *unit) {
        Units *units = unit->units;
        const char *path;
        int r;

        r = sd_bus_message_read(m, "v", "s", &path);
        if (r < 0)
                return r;
        /* Of the root there is no unit but the slice of all slices, which is everything. */
        if (*path == '\0' || units->cgroup_root < 0 ||
            cgroup_path_get_id(units->cgroup_root, path, &unit->next.cgroup_id,
                               &unit->next.cgroup_level) < 0)
                unit->next.cgroup_id = 0;
        /* Where it runs counts, not which Slice= it is to have when it starts again. */
        if (unit->next.cgroup_id > 0 && !streq(path, "/"))
                return free_and_strdup(&unit->next.cgroup_path, path);
        return 0;
}

/* One program, whatever the number of commands; none if they are different ones. */
static int read_programs(sd_bus_message *m, UnitInfo *info) {
        bool one = true;
        const char *path;
        int r;

        while ((r = sd_bus_message_enter_container(m, 'r', "sasbttttuii")) > 0) {
                r = sd_bus_message_read(m, "s", &path);
                if (r >= 0)
                        r = sd_bus_message_skip(m, "asbttttuii");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;

                info->has_exec = true;
                if (info->program && !streq(info->program, path))
                        one = false;
                if (!info->program) {
                        r = free_and_strdup(&info->program, path);
                        if (r < 0)
                                return r;
                }
        }
        if (!one) {
                free(info->program);
                info->program = NULL;
        }
        return r;
}

static int read_exec(sd_bus_message *m, Unit *unit) {
        int r;

        r = sd_bus_message_enter_container(m, 'v', "a(sasbttttuii)");
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(m, 'a', "(sasbttttuii)");
        return r < 0 ? r : read_programs(m, &unit->next);
}

/* A slice says by its name where it is; everything else by the slice that it is in. */
static int read_slice(sd_bus_message *m, Unit *unit) {
        _cleanup_free_ char *below = NULL;
        const char *slice;
        char *path;
        int r;

        r = sd_bus_message_read(m, "v", "s", &slice);
        if (r < 0 || unit->next.cgroup_path)
                return r;
        /* An alias has no cgroup of its own. */
        r = cgroup_path_of_unit(unit_types[unit_type(unit->name)].has_slice ? slice : NULL,
                                unit->next.name ?: unit->name, &below);
        if (r < 0)
                return r;
        if (asprintf(&path, "%s%s", units_get_cgroup(unit->units), below) < 0)
                return -ENOMEM;
        free(unit->next.cgroup_path);
        unit->next.cgroup_path = path;
        return 0;
}

static int read_main_pid(sd_bus_message *m, Unit *unit) {
        return sd_bus_message_read(m, "v", "u", &unit->next.main_pid);
}

static int read_end_code(sd_bus_message *m, Unit *unit) {
        return sd_bus_message_read(m, "v", "i", &unit->next.end.code);
}

static int read_end_status(sd_bus_message *m, Unit *unit) {
        return sd_bus_message_read(m, "v", "i", &unit->next.end.status);
}

static int read_end_time(sd_bus_message *m, Unit *unit) {
        return sd_bus_message_read(m, "v", "t", &unit->next.end.usec);
}

/* "-" before it: it need not be there. */
static int read_root_directory(sd_bus_message *m, Unit *unit) {
        const char *path;
        int r;

        r = sd_bus_message_read(m, "v", "s", &path);
        if (r < 0 || path[0] != '/' || streq(path, "/"))
                return r;
        return free_and_strdup(&unit->next.root_directory, path);
}

static int read_root_image(sd_bus_message *m, Unit *unit) {
        const char *path;
        int r;

        r = sd_bus_message_read(m, "v", "s", &path);
        if (r >= 0)
                unit->next.has_root_image = *path != '\0';
        return r;
}

/* In the order in which they are asked and answered. */
static const struct {
        const char *property;
        int (*read)(sd_bus_message *m, Unit *unit);
        bool of_type; /* of the interface of the unit's type */
        bool of_exec; /* only units that have programs have it */
} questions[] = {
        { "Id", read_id, false, false },
        { "LoadState", read_load_state, false, false },
        { "FragmentPath", read_fragment, false, false },
        { "DropInPaths", read_drop_ins, false, false },
        { "ControlGroup", read_cgroup, true, false },
        { "Slice", read_slice, true, false },
        { "ExecStart", read_exec, true, true },
        { "MainPID", read_main_pid, true, true },
        { "ExecMainCode", read_end_code, true, true },
        { "ExecMainStatus", read_end_status, true, true },
        { "ExecMainExitTimestampMonotonic", read_end_time, true, true },
        { "RootDirectory", read_root_directory, true, true },
        { "RootImage", read_root_image, true, true },
};

_Static_assert(ELEMENTSOF(questions) == UNIT_QUESTIONS_MAX, "one slot for each question");

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        UnitQuestion *question = userdata;
        Unit *unit = question->unit;
        size_t i = (size_t) (question - unit->questions);
        int r = sd_bus_message_is_method_error(m, NULL) ? -sd_bus_message_get_errno(m)
                                                        : questions[i].read(m, unit);

        unit_take_answer(unit, i, r);
        return 0;
}

static int ask_question(Unit *unit, size_t i) {
        UnitQuestion *question = &unit->questions[i];
        size_t type = unit_type(unit->name);
        int r;

        if (questions[i].of_exec && !unit_types[type].has_exec)
                return 0;
        question->unit = unit;
        r = sd_bus_call_method_async(
                unit->units->bus, &question->slot, SYSTEMD_NAME, unit->path, BUS_PROPERTIES, "Get",
                on_answer, question, "ss",
                questions[i].of_type ? unit_types[type].interface : SYSTEMD_UNIT,
                questions[i].property);
        if (r >= 0)
                unit->n_questions++;
        return r;
}

static void unit_queue(Unit *unit) {
        Units *units = unit->units;

        unit->queued = true;
        unit->next_queued = NULL;
        if (units->first_queued)
                units->last_queued->next_queued = unit;
        else
                units->first_queued = unit;
        units->last_queued = unit;
}

int unit_ask(Unit *unit) {
        Units *units = unit->units;
        int r = 0;

        if (!units->bus)
                unit->in_vain = true;
        if (!units->bus || unit->queued)
                return 0;
        unit->again = unit->n_questions > 0;
        if (unit->again)
                return 0;
        if (units->n_asking >= ASKING_MAX) {
                unit_queue(unit);
                return 0;
        }

        unit->error = 0;
        unit_info_done(&unit->next);
        for (size_t i = 0; i < ELEMENTSOF(questions) && r >= 0; i++)
                r = ask_question(unit, i);
        /* The answers to the others are not all that there is to know. */
        unit->error = r < 0 ? r : 0;
        if (unit->n_questions > 0)
                units->n_asking++;
        else
                unit->in_vain = true;
        return r;
}
