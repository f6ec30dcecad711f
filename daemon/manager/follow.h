/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_FOLLOW_H
#define MANAGER_FOLLOW_H

#include "manager/internal.h"

/* Settles a binding whose unit has changed: probes that are where they belong stay. */
void manager_follow_unit(Manager *manager, Binding *binding);

/* Are its probes where they belong, whatever its unit does? */
bool manager_probes_fit(Manager *manager, Binding *binding);

/*
 * Is its file as it was when its probes were set, as far as can be told now, and is the program of
 * its unit that of then? If not, it is to be settled anew.
 */
bool manager_file_fits(Manager *manager, Binding *binding);

/* As in FollowHandlers. */
extern const FollowHandlers manager_follow_handlers;

#endif
