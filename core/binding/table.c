/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bindings by their full name: a sorted array. There are a thousand at most, they are looked up by
 * people and listed in order, and added when a configuration is read: no need for more than that.
 */

#include "binding/table.h"

void binding_table_done(BindingTable *table) {
        for (size_t i = 0; i < table->n; i++)
                binding_free(table->items[i]);
        free(table->items);
        *table = (BindingTable) {};
}

/* The index of that name, or else where it belongs. */
static bool find(const BindingTable *table, const char *name, size_t *ret_index) {
        size_t first = 0, last = table->n;

        while (first < last) {
                size_t middle = first + (last - first) / 2;
                int c = strcmp(name, table->items[middle]->name);

                if (c == 0) {
                        *ret_index = middle;
                        return true;
                }
                if (c < 0)
                        last = middle;
                else
                        first = middle + 1;
        }
        *ret_index = first;
        return false;
}

Binding *binding_table_get(const BindingTable *table, const char *name) {
        size_t i;

        return find(table, name, &i) ? table->items[i] : NULL;
}

static int make_room(BindingTable *table) {
        size_t allocated = table->allocated > 0 ? 2 * table->allocated : 16;
        Binding **items;

        if (table->n < table->allocated)
                return 0;
        items = reallocarray(table->items, allocated, sizeof(*items));
        if (!items)
                return -ENOMEM;
        table->items = items;
        table->allocated = allocated;
        return 0;
}

int binding_table_put(BindingTable *table, Binding *binding) {
        size_t i;
        int r;

        if (find(table, binding->name, &i))
                return -EEXIST;
        r = make_room(table);
        if (r < 0)
                return r;

        memmove(table->items + i + 1, table->items + i, (table->n - i) * sizeof(table->items[0]));
        table->items[i] = binding;
        table->n++;
        return 0;
}

Binding *binding_table_take(BindingTable *table, const char *name) {
        Binding *binding;
        size_t i;

        if (!find(table, name, &i))
                return NULL;
        binding = table->items[i];
        table->n--;
        memmove(table->items + i, table->items + i + 1, (table->n - i) * sizeof(table->items[0]));
        return binding;
}

size_t binding_table_count(const BindingTable *table, BindingState state) {
        size_t n = 0;

        for (size_t i = 0; i < table->n; i++)
                n += table->items[i]->measurement.state == state;
        return n;
}
