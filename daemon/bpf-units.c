/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Two views of the same: by index, where a program that has a binding looks for its cgroup, and by
 * cgroup, where a program that has a task looks for its units. The second is needed only for sites
 * with many bindings, and may lag behind the first.
 */

#include "bpf-units.h"

#include <bpf/bpf.h>

#include "bpf-memory.h"
#include "cleanup.h"

#define LEVELS_MAX 32 /* bits of unit_levels */

typedef struct UnitUse {
        char *name; /* NULL: none */
        unsigned n_users;
} UnitUse;

int unit_table_init(UnitTable *table, size_t n, int units_fd, int by_cgroup_fd, uint32_t *levels) {
        void *memory;
        int r;

        *table = (UnitTable){ .n = n, .by_cgroup_fd = by_cgroup_fd, .levels = levels };
        table->items = calloc(n, sizeof(*table->items));
        if (!table->items)
                return -ENOMEM;
        r = bpf_memory_map(units_fd, n, sizeof(*table->memory), &memory);
        if (r < 0)
                return r;
        table->memory = memory;
        return 0;
}

void unit_table_done(UnitTable *table) {
        for (size_t i = 0; table->items && i < table->n; i++)
                free(table->items[i].name);
        free(table->items);
        bpf_memory_unmap(table->memory, table->n, sizeof(*table->memory));
        *table = (UnitTable){};
}

/* The unit of that name, else a free place, else TLOB_UNIT_NONE. */
static uint32_t find(const UnitTable *table, const char *name) {
        uint32_t unused = TLOB_UNIT_NONE;

        for (uint32_t i = TLOB_UNIT_NONE + 1; i < table->n; i++) {
                const UnitUse *use = &table->items[i];

                if (use->n_users == 0 && unused == TLOB_UNIT_NONE)
                        unused = i;
                if (use->n_users > 0 && name && streq_empty(use->name, name))
                        return i;
        }
        return unused;
}

int unit_table_join(UnitTable *table, const char *name, uint32_t *ret_unit) {
        uint32_t unit = find(table, name);
        UnitUse *use = &table->items[unit];

        if (unit == TLOB_UNIT_NONE)
                return -ENOSPC;
        if (use->n_users == 0 && name) {
                use->name = strdup(name);
                if (!use->name)
                        return -ENOMEM;
        }
        use->n_users++;
        *ret_unit = unit;
        return 0;
}

void unit_table_leave(UnitTable *table, uint32_t unit) {
        UnitUse *use = &table->items[unit];

        if (unit == TLOB_UNIT_NONE || --use->n_users > 0)
                return;
        (void) unit_table_set_cgroup(table, unit, 0, 0);
        free(use->name);
        *use = (UnitUse){};
}

int unit_table_set_cgroup(UnitTable *table, uint32_t unit, uint64_t cgroup_id, uint32_t level) {
        struct tlob_unit *u = &table->memory[unit];
        uint64_t before = u->cgroup_id;

        if (unit == TLOB_UNIT_NONE || before == cgroup_id)
                return 0;
        if (level >= LEVELS_MAX)
                return -E2BIG;

        __atomic_store_n(&u->cgroup_id, 0, __ATOMIC_RELEASE);
        if (before)
                (void) bpf_map_delete_elem(table->by_cgroup_fd, &before);
        if (!cgroup_id)
                return 0;

        if (bpf_map_update_elem(table->by_cgroup_fd, &cgroup_id, &unit, BPF_ANY) < 0)
                return -errno;
        __atomic_fetch_or(table->levels, UINT32_C(1) << level, __ATOMIC_RELAXED);
        __atomic_store_n(&u->level, level, __ATOMIC_RELAXED);
        __atomic_store_n(&u->cgroup_id, cgroup_id, __ATOMIC_RELEASE);
        return 0;
}
