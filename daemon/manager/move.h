/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_MOVE_H
#define MANAGER_MOVE_H

#include "manager/internal.h"

/* Its budgets have changed: where it is measured, or in a place that is better for them. */
int manager_apply_budgets(Manager *manager, Binding *binding);

/* Its back end says that of it: it is set up anew, or moves, or stays. */
void manager_on_notice(const BackendNotice *notice, const BackendOps *ops, Binding *binding,
                       void *userdata);

#endif
