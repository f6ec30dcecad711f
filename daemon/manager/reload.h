/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_RELOAD_H
#define MANAGER_RELOAD_H

#include "manager/internal.h"

/* All that a reload has begun is done, once no file is being looked at any more. */
void manager_conclude_reload(Manager *manager);

/* What Units tells; userdata is the manager. */
extern const UnitsHandlers manager_units_handlers;

#endif
