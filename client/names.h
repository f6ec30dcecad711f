/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLIENT_NAMES_H
#define CLIENT_NAMES_H

#include <stdbool.h>

#include "bus-json.h"
#include "connection.h"

/*
 * The bindings that a name on the command line means: the one of that full name, else all of that
 * unit, whose name may lack ".service" or be an alias, and those of its template. An empty array:
 * there are none. Returns 0 or -ENOMEM; the caller owns *ret. *ret_unit is the unit, which the
 * caller frees, or NULL.
 */
int names_find(Connection *connection, const json_object *bindings, const char *name,
               json_object **ret, char **ret_unit);

/* True if the binding is for all instances of a template, and the unit is one of them. */
bool names_has_all_instances(const json_object *binding, const char *unit);

/* Says that it means none, and which names are near to it. Returns 0 or -ENOMEM. */
int names_complain(const json_object *bindings, const char *name);

#endif
