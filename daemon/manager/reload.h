/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_RELOAD_H
#define MANAGER_RELOAD_H

#include "manager/internal.h"

/* If all is known of units and files that a reload has asked for, it is over. */
void manager_conclude_reload(Manager *manager);

/* What Units tells; userdata is the manager. */
extern const UnitsHandlers manager_units_handlers;

#endif
