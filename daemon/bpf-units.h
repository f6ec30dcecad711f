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
        int spares_fd;
        uint32_t *levels; /* in the programs' memory */
        unsigned root_level;
        unsigned n_pending;
} UnitTable;

/* The maps of the programs; all stay the caller's. */
typedef struct UnitMaps {
        int units, by_cgroup, by_path, instances, spares;
} UnitMaps;

/*
 * n: as many units as the maps have room for, TLOB_UNIT_NONE among them. root_level: how deep the root
 * lies that we see.
 */
int unit_table_init(UnitTable *table, size_t n, const UnitMaps *maps, uint32_t *levels,
                    unsigned root_level);
void unit_table_done(UnitTable *table);

/*
 * One more binding of the unit of that name. NULL: a confinement that has no name, and is nobody
 * else's. path is where its cgroup is or will be, below the root that we see; NULL if that is not
 * known. Returns 0, -ENOSPC or -ENOMEM. Paths and spares are looked at from unit_table_complete() on.
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
 * Units that joined have all their bindings: births are seen from now on. One that an instance has become
 * meanwhile has no path, and a spare has. Returns 0 or a negative errno.
 */
int unit_table_complete(UnitTable *table);

/*
 * The unit is a template, and stands for all its instances, those that run already and those that come.
 * name: that of its cgroup, without an instance's ("foo@.service"). level: where its instances mostly
 * are. Returns 0 or a negative errno.
 */
int unit_table_set_template(UnitTable *table, uint32_t unit, const char *name, unsigned level);

/*
 * The unit will be the first instance of that template that has no unit of its own; name as above. Of one
 * that is one already nothing changes. Returns 0 or a negative errno.
 */
int unit_table_set_spare(UnitTable *table, uint32_t unit, const char *name);

/*
 * An instance has taken a spare. Returns 1, 0 if there is no such spare any more, or a negative errno; then
 * the instance is forgotten.
 */
int unit_table_take_spare(UnitTable *table, const struct tlob_instance_record *record);

#endif
