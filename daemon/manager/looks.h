/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_LOOKS_H
#define MANAGER_LOOKS_H

#include "manager/internal.h"

/* Has a process of its unit the binding's file? If none has, its state says so. */
void manager_look_at_unit(Manager *manager, Binding *binding);

/*
 * The same of all bindings, if the daemon before this one has left something: what it has measured
 * in the old version of a program is taken over.
 */
void manager_look_for_old(Manager *manager);

/* As in FollowHandlers. */
uint64_t manager_look_at_units(Manager *manager, uint64_t usec);

#endif
