/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef UNIT_INTERNAL_H
#define UNIT_INTERNAL_H

#include <systemd/sd-event.h>

#include "unit/files.h"
#include "unit/unit.h"

/* What the unit*.c files share. */

#define SYSTEMD_NAME      "org.freedesktop.systemd1"
#define SYSTEMD_PATH      "/org/freedesktop/systemd1"
#define SYSTEMD_UNIT_PATH "/org/freedesktop/systemd1/unit"
#define SYSTEMD_MANAGER   "org.freedesktop.systemd1.Manager"
#define SYSTEMD_UNIT      "org.freedesktop.systemd1.Unit"
#define SYSTEMD_SERVICE   "org.freedesktop.systemd1.Service"
#define BUS_PROPERTIES    "org.freedesktop.DBus.Properties"

#define UNIT_QUESTIONS_MAX 13

typedef struct Unit Unit;
typedef struct UnitStart UnitStart;

typedef struct UnitQuestion {
        Unit *unit;
        sd_bus_slot *slot; /* NULL: not under way */
} UnitQuestion;

struct Unit {
        Units *units;
        char *name; /* as asked for: it can be an alias */
        char *path; /* on D-Bus */
        unsigned n_watchers;
        bool followed;
        bool own_files; /* it is followed for files that are for it alone */
        unsigned round; /* the last refresh in which it was to be followed */

        bool in_vain;       /* it was asked for, and nobody answered */
        uint64_t gone_with; /* its cgroup, when it was unloaded and asked for nevertheless; or 0 */
        bool is_kept;       /* it runs, but systemd cannot load its files any more */
        UnitInfo info;      /* name NULL: nothing is known yet */
        UnitInfo next;      /* as far as it has been answered */

        UnitQuestion questions[UNIT_QUESTIONS_MAX];
        unsigned n_questions; /* under way */
        int error;            /* of an answer */
        bool again;           /* something has changed since it was asked */
        bool queued;
        Unit *next_queued;
};

typedef enum RefreshState {
        REFRESH_IDLE,
        REFRESH_DIRECTORIES, /* systemd is asked where units are */
        REFRESH_FILES,       /* these are looked through */
        REFRESH_NAMES,       /* systemd is asked which units there are */
        REFRESH_UNITS,       /* and about each of ours */
} RefreshState;

struct Units {
        sd_bus *bus;
        int cgroup_root;
        char *cgroup_path; /* of systemd itself: its units are below; NULL: it has not answered */
        const UnitsHandlers *handlers;
        void *userdata;

        void *table; /* of Unit, by name: see tsearch() */
        UnitFiles *files;

        Unit *first_queued, *last_queued;
        unsigned n_asking;
        UnitStart *starts; /* whose end has not been told */

        bool is_reloading; /* systemd is reading its files again */
        bool is_stale;     /* it has done so since units were asked about, or did not answer */
        RefreshState state;
        unsigned round;
        int error;
        sd_bus_slot *question; /* of the refresh */
        sd_event_source *step;
};

/* unit.c: one unit */
int unit_new(Units *units, const char *name, Unit **ret);
Unit *unit_free(Unit *unit);
DEFINE_CLEANUP(Unit, unit_free);

/* Asks systemd about it, now or when others have been answered. */
int unit_ask(Unit *unit);

/* It is known that it does not run any more. */
void unit_set_stopped(Unit *unit);

void unit_info_done(UnitInfo *info);

/* unit/follow.c */
Unit *units_find(const Units *units, const char *name);

/* Made if need be, watched and followed by nobody yet. */
int units_get_or_make(Units *units, const char *name, Unit **ret);

/* Follows a unit, and asks about it. */
int units_follow(Units *units, const char *name, bool own_files);

/* Frees it if it is of no use any more. */
void units_drop(Units *units, Unit *unit);

/* There is something new about the unit of that name, in systemd's words. */
void units_changed(Units *units, const char *name);

/* Everything that was asked about units is answered. */
void units_answered(Units *units);

/* unit/start.c: a job of that unit has ended, with that result */
void unit_start_job_removed(Units *units, const char *job, const char *unit, const char *result);

/* systemd has begun anew, and may not have told of the end of jobs. */
void unit_starts_forget(Units *units);
void unit_starts_done(Units *units);

/* unit/refresh.c */
void refresh_done(Units *units);
void refresh_answered(Units *units);

#endif
