/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TENANT_TENANTS_H
#define TENANT_TENANTS_H

#include <systemd/sd-bus.h>

#include "base/cleanup.h"
#include "manager/manager.h"

/*
 * The tlobd of users, as far as the system's one measures for them: see backend/wire.h. Who may is
 * decided by polkit, what by the kernel: a cgroup that was delegated to the user, a file that he
 * has opened, and processes that he could look into himself.
 */

typedef struct Tenants Tenants;

/*
 * Listens at that path. asking: where polkit is; it is kept. The manager has its loop, and must
 * outlive the tenants. Returns 0 or a negative errno.
 */
int tenants_new(Manager *manager, sd_bus *asking, const char *path, Tenants **ret);

/* Tells each what was counted for it, and that this is the end. */
Tenants *tenants_free(Tenants *tenants);
DEFINE_CLEANUP(Tenants, tenants_free);

#endif
