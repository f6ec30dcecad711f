/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_TABLE_H
#define BINDING_TABLE_H

#include <stddef.h>

#include "binding/binding.h"

/* Bindings in the order of their full names, which are unique. Owns what is in it. */

typedef struct BindingTable {
        Binding **items;
        size_t n;
        size_t allocated;
} BindingTable;

void binding_table_done(BindingTable *table);

/* The binding of that full name, owned by the table; NULL if there is none. */
Binding *binding_table_get(const BindingTable *table, const char *name);

/* How many are in that state. */
size_t binding_table_count(const BindingTable *table, BindingState state);

/* Takes ownership on success. Returns 0, -EEXIST, -ENOMEM. */
int binding_table_put(BindingTable *table, Binding *binding);

/* Takes the binding of that name out and gives it to the caller; NULL if there is none. */
Binding *binding_table_take(BindingTable *table, const char *name);

#endif
