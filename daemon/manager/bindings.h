/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_BINDINGS_H
#define MANAGER_BINDINGS_H

#include "manager/internal.h"

/*
 * Puts a whole new configuration in the place of the old one, with the bindings of units in it.
 * What measures the same as before goes on. Takes config over.
 */
void manager_apply_config(Manager *manager, Config *config);

/*
 * The same for the bindings of one unit, from its own files; the rest of config is not looked at.
 */
void manager_apply_unit(Manager *manager, const char *unit, Config *config);

/* What is wrong in the configuration. */
void manager_log_messages(const Config *config);

/* Makes a binding that has its probes one of the configuration's. Takes it over. */
void manager_adopt_binding(Manager *manager, Binding *binding);

/* A binding that leaves the table. */
void manager_retire_binding(Manager *manager, Binding *binding);

#endif
