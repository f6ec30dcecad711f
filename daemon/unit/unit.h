/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "base/cleanup.h"

/*
 * What systemd says of units, and follows of them: whether they run, and in which cgroup; the files
 * that they are made of; their program. Works without systemd too: then there are no units.
 */

typedef struct Units Units;

/*
 * A template is no unit that systemd could be asked about: an instance that nobody starts stands
 * for it, and tells what all have in common. NULL for want of memory.
 */
char *unit_stand_in_for(const char *template);
bool unit_is_stand_in(const char *unit);

/* The instance's name of all stand-ins. */
#define UNIT_STAND_IN "tlobd_any"

/* How a process ended, as waitid(2) has it. systemd forgets it when the unit starts again. */
typedef struct UnitEnd {
        uint64_t usec;  /* CLOCK_MONOTONIC; 0: it has not ended */
        int32_t code;   /* CLD_EXITED ... */
        int32_t status; /* or the signal */
} UnitEnd;

/* What is known of a unit; owned by Units. */
typedef struct UnitInfo {
        char *name;    /* systemd's own, whatever alias was asked for */
        char **files;  /* the fragment, then drop-ins, as systemd reads them; NULL after the last */
        char *program; /* of its ExecStart=, as it is there; NULL if there is not just one */
        bool is_loaded;       /* false: masked, not found, or with mistakes */
        bool has_exec;        /* it has ExecStart= at all */
        uint32_t main_pid;    /* 0: it has none */
        UnitEnd end;          /* of its last main process */
        char *root_directory; /* NULL: that of the machine */
        bool has_root_image;
        char *cgroup_path;  /* where its cgroup is or will be; NULL: not known */
        uint64_t cgroup_id; /* 0: it does not run */
        unsigned cgroup_level;
} UnitInfo;

typedef struct UnitsHandlers {
        /* The main process of a unit that was known to run has ended. Comes before its state. */
        void (*ended)(const char *unit, const UnitEnd *end, void *userdata);

        /*
         * A unit that is watched or followed is known now, runs, stops, or would elsewhere or as
         * another program. NULL: nobody knows it, because systemd does not answer.
         */
        void (*state)(const char *unit, const UnitInfo *info, void *userdata);

        /*
         * A unit that is followed has other files or another program; NULL: it is not followed any
         * more.
         */
        void (*files)(const char *unit, const UnitInfo *info, void *userdata);

        /* systemd has read its files again: time for units_refresh(). */
        void (*reloaded)(void *userdata);

        /*
         * What units_refresh() wanted to know is known. error: 0, or why it is what was known
         * before.
         */
        void (*refreshed)(int error, void *userdata);

        /*
         * A unit that units_start() was called for has started; of a service of Type=oneshot: has
         * ended. error: why it has not, a sentence; NULL: all is well.
         */
        void (*started)(const char *unit, const char *error, void *userdata);
} UnitsHandlers;

/*
 * bus may be NULL; else it is kept, and must be attached to the event loop by the caller. handlers
 * must outlive the units; they are called from the event loop, with userdata.
 */
int units_new(sd_bus *bus, const UnitsHandlers *handlers, void *userdata, Units **ret);
Units *units_free(Units *units);
DEFINE_CLEANUP(Units, units_free);

/*
 * Is this process the service of a unit that systemd starts again when it ends now? Waits.
 * Returns 1, 0, or a negative errno: systemd has not told.
 */
int units_expect_restart(const Units *units);

/*
 * Watches one unit, loaded or not; each call needs its own units_unwatch(). What it is doing now
 * comes through the handler.
 */
int units_watch(Units *units, const char *unit);
void units_unwatch(Units *units, const char *unit);

/*
 * A unit runs of which systemd has not told yet: follows it, if a file that is for many is for it.
 */
int units_expect(Units *units, const char *unit);

/* What is known of a unit that is watched or followed; NULL if nothing is yet. */
const UnitInfo *units_get(const Units *units, const char *unit);

/* True if there is no more to be known of a unit that is watched than units_get() tells. */
bool units_was_asked(const Units *units, const char *unit);

/*
 * Looks for units with sections for us, and from then on follows them. The handler is called when
 * it is done, unless this fails. -EALREADY: it is asking about units already; if it is still
 * looking for them, it begins anew, and the handler is called once.
 */
int units_refresh(Units *units);

/*
 * Calls f for each unit that is followed, by systemd's name, until one does not return 0. Stand-ins
 * are among them, for templates that a file with sections is for.
 */
int units_for_each(Units *units, int (*f)(const UnitInfo *info, void *userdata), void *userdata);

/*
 * Starts a unit, if that is possible beside what systemd is doing already. The handler is called
 * once for each call that has returned 0, later. Returns 0 or a negative errno.
 */
int units_start(Units *units, const char *unit);

/*
 * The cgroup below which all units are: "" of the system manager of a machine,
 * "/user.slice/user-1000.slice/user@1000.service" of that user's. Owned by units.
 */
const char *units_get_cgroup(const Units *units);

/* Could this file of a unit have sections for us? */
bool units_file_has_sections(Units *units, const char *path);

#endif
