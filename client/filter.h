/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILTER_H
#define FILTER_H

#include <stdbool.h>

#include "bus-json.h"
#include "connection.h"

/* --unit= and --binding=: which bindings or violations are shown. */
typedef struct Filter {
        char *unit;          /* a pattern; NULL: any */
        const char *binding; /* a pattern, not owned; NULL: any */
} Filter;

/* Returns 0 or -ENOMEM. The connection must outlive the filter. */
int filter_init(Filter *filter, Connection *connection);
void filter_done(Filter *filter);

/*
 * The first max rows (0: all) whose members of these names match. Returns 0 or -ENOMEM; the caller
 * owns *ret.
 */
int filter_select(const Filter *filter, json_object *rows, const char *binding_key,
                  const char *unit_key, size_t max, json_object **ret);

bool filter_matches(const Filter *filter, const char *binding, const char *unit);

/*
 * Adds "shown-unit" to all rows of a table: their units, unless all names of bindings begin with
 * them, as "nginx.service/request" does, or there is none; then "". Returns 0 or -ENOMEM.
 */
int units_show(json_object *rows, const char *binding_key, const char *unit_key);

#endif
