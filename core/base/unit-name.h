/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_UNIT_NAME_H
#define BASE_UNIT_NAME_H

#include <stdbool.h>

#define UNIT_NAME_MAX 255

/* What units of a type can have in common. */
typedef enum UnitTrait {
        UNIT_ANY = 0,
        UNIT_HAS_BINDINGS = 1 << 0,  /* bindings can be confined to it */
        UNIT_HAS_PROCESSES = 1 << 1, /* in its cgroup are processes, not only other units */
} UnitTrait;

/*
 * The suffix with which the name ends (".service"), if that is a type of units with these traits,
 * else NULL. It can be all of the name.
 */
const char *unit_name_type(const char *name, unsigned traits);

/* The name of a service (a template too), slice or scope. */
bool unit_name_is_valid(const char *name);

/* "foo@.service" */
bool unit_name_is_template(const char *name);

/* "foo@x.service" of "foo@.service" */
bool unit_name_is_instance(const char *name, const char *template);

/* "nginx" -> "nginx.service", as systemctl does; "" stays so. NULL for want of memory. */
char *unit_name_complete(const char *unit);

/* "foo@.service", "x" -> "foo@x.service"; NULL for want of memory. */
char *unit_name_make_instance(const char *template, const char *instance);

#endif
