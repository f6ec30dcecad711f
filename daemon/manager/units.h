/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_UNITS_H
#define MANAGER_UNITS_H

#include "manager/internal.h"

/* What systemd says of the binding's unit; NULL if it says nothing. */
const UnitInfo *manager_unit_of(const Manager *manager, const Binding *binding);

/*
 * The innermost unit of that cgroup, of systemd's whose units are followed; the caller's. -ENXIO:
 * it is in none of them.
 */
int manager_unit_of_cgroup(const Manager *manager, const char *cgroup_path, char **ret_unit);

/* Is it this unit that systemd is asked about for the binding? */
bool manager_binding_has_unit(const Binding *binding, const char *unit);

/* The binding's unit is followed, or not any more. */
void manager_watch_unit(Manager *manager, Binding *binding);
void manager_unwatch_unit(Manager *manager, Binding *binding);

/*
 * Notes where the binding is confined to. Returns 1 if it can be measured now, 0 if its unit does
 * not run, or a negative errno.
 */
int manager_confine_binding(Manager *manager, Binding *binding);

/*
 * Notes how the processes of the binding's unit see files, and what systemd says of its program.
 * Returns 1 if that is all that there is to know, 0 if the binding needs it and the unit is not
 * loaded, or an error with a sentence.
 */
int manager_learn_program(const Manager *manager, Binding *binding, char **ret_error);

/* Does its unit see files as when the binding's probes were set? */
bool manager_unit_fits(const Manager *manager, Binding *binding);

/* Is the program of its unit still the one of then? Without a unit, it is. */
bool manager_program_fits(const Manager *manager, const Binding *binding);

/*
 * Has systemd told of the units of all bindings? After a reload, m->n_known is 0 at first: of so
 * many it has.
 */
bool manager_units_are_known(Manager *m);

#endif
