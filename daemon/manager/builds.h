/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_BUILDS_H
#define MANAGER_BUILDS_H

#include "manager/internal.h"

/*
 * The probes of a binding were just set. If it was measured in another build before, the two are
 * compared from time to time, until there are enough windows to tell; that it has become worse is
 * reported once.
 */
void manager_compare_build(Manager *manager, Binding *binding);

void manager_stop_comparing(Manager *manager);

#endif
