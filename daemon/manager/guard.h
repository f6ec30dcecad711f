/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_GUARD_H
#define MANAGER_GUARD_H

#include "manager/internal.h"

/*
 * Looks at what probes cost when a back end says that it is worth it, and takes those away that
 * cost more than CPULimit= allows. To be called after each event of a back end.
 */
void manager_guard_costs(Manager *manager);

void manager_stop_guard(Manager *manager);

#endif
