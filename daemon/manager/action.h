/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_ACTION_H
#define MANAGER_ACTION_H

#include "manager/internal.h"

/*
 * Starts the unit of OnViolation=, unless one was started for the binding not long ago, or has not
 * ended, or the violation is an old one. What is not started is counted.
 */
void manager_act(Manager *manager, Binding *binding, const Violation *violation);

void manager_actions_done(Manager *manager);

/* It has been started, or not: see UnitsHandlers. */
void manager_on_started(const char *unit, const char *error, void *userdata);

#endif
