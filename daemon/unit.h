/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef UNIT_H
#define UNIT_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "cleanup.h"

/*
 * Follows units of the system manager: whether they run, and in which cgroup. Works without systemd
 * too: then no unit ever runs.
 */

typedef struct Units Units;

/* Called from the event loop when the cgroup of a watched unit changes; cgroup_id 0: it does not run. */
typedef void (*UnitsHandler)(const char *unit, uint64_t cgroup_id, unsigned level, void *userdata);

/* bus may be NULL; else it is kept, and must be attached to the event loop by the caller. */
int units_new(sd_bus *bus, UnitsHandler handler, void *userdata, Units **ret);
Units *units_free(Units *units);
DEFINE_CLEANUP(Units, units_free);

/*
 * Follows one more unit; each call needs its own units_unwatch(). What it is doing now comes through the handler,
 * from the event loop.
 */
int units_watch(Units *units, const char *unit);
void units_unwatch(Units *units, const char *unit);

/* The last known cgroup of a watched unit; 0 if it does not run, or nothing is known yet. */
uint64_t units_get_cgroup(const Units *units, const char *unit, unsigned *ret_level);

/* "foo@.service" */
bool unit_name_is_template(const char *name);

#endif
