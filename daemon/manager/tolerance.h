/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_TOLERANCE_H
#define MANAGER_TOLERANCE_H

#include "manager/internal.h"

/* Begins to follow whether Tolerance= of the binding is kept, or goes on, or ends. */
void manager_follow_tolerance(Manager *manager, Binding *binding);

/* Its statistics have been reset: the time begins anew. */
void manager_restart_tolerance(Manager *manager, Binding *binding);

/* One of its windows is over its budget. */
void manager_use_tolerance(Manager *manager, Binding *binding);

void manager_stop_tolerances(Manager *manager);

#endif
