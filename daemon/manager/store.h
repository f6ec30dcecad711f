/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_STORE_H
#define MANAGER_STORE_H

#include "manager/internal.h"

/*
 * Gives the back ends what the service manager has kept of a daemon before this one, or the
 * directory of manager_keep_in(). Returns 0, or a negative errno: that directory cannot be used.
 * Logs.
 */
int manager_take_store(Manager *manager);

/* As in BackendsHandlers. */
void manager_on_kept(const BackendOps *ops, const int *fds, void *userdata);

#endif
