/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PROXY_H
#define PROXY_H

#include "bus-json.h"
#include "connection.h"

/*
 * What tlobd knows, read over D-Bus: properties as JSON objects by their D-Bus names. All functions
 * return 0, or a negative errno after they have said what is wrong.
 */

/* The properties of the manager. */
int proxy_get_manager(Connection *connection, json_object **ret);

/* The properties of every binding, in an array in the order of their names. */
int proxy_get_bindings(Connection *connection, json_object **ret);

/* The properties of one binding, and Cost, as proxy_get_cost() has it. */
int proxy_get_binding(Connection *connection, const char *name, json_object **ret);

/* The object path of a binding. The caller frees it. */
int proxy_get_binding_path(Connection *connection, const char *name, char **ret);

/*
 * What a binding, by its path, costs processes that it is not for: a sentence that the caller
 * frees, "" if nothing. Says nothing when it fails: an older tlobd does not know.
 */
int proxy_get_cost(Connection *connection, const char *path, char **ret);

/* The properties of the binding with that object. */
int proxy_get_binding_at(Connection *connection, const char *path, json_object **ret);

/* Name, Unit, State, Backend, BudgetNSec, Windows and Violations of every binding. */
int proxy_list_bindings(Connection *connection, json_object **ret);

/* At most max recent violations, newest first; 0: all. */
int proxy_get_violations(Connection *connection, uint32_t max, json_object **ret);

#endif
