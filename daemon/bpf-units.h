/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_UNITS_H
#define BPF_UNITS_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "tlob-record.h"

/*
 * The units that bindings are confined to, as the BPF programs see them. Bindings of one unit share
 * one; its cgroup comes and goes with a single store, and all its bindings with it.
 */

typedef struct UnitTable {
        struct tlob_unit *memory; /* shared with the programs */
        struct UnitUse *items;    /* an index here is an index there */
        size_t n;
        int by_cgroup_fd;
        int by_path_fd;
        int instances_fd;
        uint32_t *levels; /* in the programs' memory */
} UnitTable;

/* n: as many units as the maps have room for, TLOB_UNIT_NONE among them. */
int unit_table_init(UnitTable *table, size_t n, int units_fd, int by_cgroup_fd, int by_path_fd,
                    int instances_fd, uint32_t *levels);
void unit_table_done(UnitTable *table);

/*
 * One more binding of the unit of that name. NULL: a confinement that has no name, and is nobody
 * else's. path is where its cgroup is or will be, below the root that we see; NULL if that is not
 * known. Returns 0, -ENOSPC or -ENOMEM.
 */
int unit_table_join(UnitTable *table, const char *name, const char *path, uint32_t *ret_unit);
void unit_table_leave(UnitTable *table, uint32_t unit);

/*
 * Where it runs from now on. 0: nowhere. What a unit with a path does, the programs know before we
 * do: of it only a cgroup that was made later than the one they know is news. Returns 0 or a negative
 * errno.
 */
int unit_table_set_cgroup(UnitTable *table, uint32_t unit, uint64_t cgroup_id, uint32_t level);

/*
 * The unit is a template, whose path has a place for the names of its instances ("foo@.service"). They
 * are found by that, those that run already and those that come, at that depth. Returns 0 or a
 * negative errno.
 */
int unit_table_set_template(UnitTable *table, uint32_t unit, unsigned root_level);

#endif
