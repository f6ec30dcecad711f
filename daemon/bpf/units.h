/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_UNITS_H
#define BPF_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/kept.h"
#include "bpf/layout.h"

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
        struct tlob_levels *levels; /* in the programs' memory */
        uint32_t *n_followed;       /* the same */
        unsigned root_level;
        unsigned n_pending;
        KeptUnit *kept; /* of each unit, for the next daemon; not owned; NULL: there is none */
} UnitTable;

/* The maps of the programs; all stay the caller's. */
typedef struct UnitMaps {
        int units, by_cgroup, by_path, instances, spares;
} UnitMaps;

/*
 * n: as many units as the maps have room for, TLOB_UNIT_NONE among them. root_level: how deep the
 * root lies that we see. kept: as in UnitTable; what is in it and in the maps is there until
 * unit_table_drop_inherited().
 */
int unit_table_init(UnitTable *table, size_t n, const UnitMaps *maps, struct tlob_levels *levels,
                    uint32_t *n_followed, unsigned root_level, KeptUnit *kept);
void unit_table_done(UnitTable *table);

/* The predecessor's units that no binding has joined go. */
void unit_table_drop_inherited(UnitTable *table);

/*
 * One more binding of the unit of that name. NULL: a confinement that has no name, and is nobody
 * else's. path is where its cgroup is or will be, below the root that we see; NULL if that is not
 * known. Returns 0, -ENOSPC or -ENOMEM. Paths and spares are looked at from unit_table_complete()
 * on.
 */
int unit_table_join(UnitTable *table, const char *name, const char *path, uint32_t *ret_unit);
void unit_table_leave(UnitTable *table, uint32_t unit);

/*
 * The same for a binding that the predecessor had in that unit. -ENOENT: there is no such unit, or
 * not any more.
 */
int unit_table_join_again(UnitTable *table, uint32_t unit, const char *path);

/*
 * From now on the programs tell of its processes that come and go; each call but the last takes one
 * more to end it. TLOB_UNIT_NONE has none.
 */
void unit_table_follow(UnitTable *table, uint32_t unit);
void unit_table_unfollow(UnitTable *table, uint32_t unit);
bool unit_table_is_followed(const UnitTable *table, uint32_t unit);

/*
 * Where it runs from now on. 0: nowhere. What a unit with a path does, the programs know before we
 * do: of it only a cgroup that was made later than the one they know is news. Returns 0 or a
 * negative errno.
 */
int unit_table_set_cgroup(UnitTable *table, uint32_t unit, uint64_t cgroup_id, uint32_t level);

/*
 * Units that joined have all their bindings: births are seen from now on. One that an instance has
 * become meanwhile has no path, and a spare has. Returns 0 or a negative errno.
 */
int unit_table_complete(UnitTable *table);

/*
 * The unit is a template, and stands for all its instances, those that run already and those that
 * come. name: that of its cgroup, without an instance's ("foo@.service"). level: where its
 * instances mostly are. Returns 0 or a negative errno.
 */
int unit_table_set_template(UnitTable *table, uint32_t unit, const char *name, unsigned level);

/*
 * The unit will be the first instance of that template that has no unit of its own; name as above.
 * Of one that is one already nothing changes. Returns 0 or a negative errno.
 */
int unit_table_set_spare(UnitTable *table, uint32_t unit, const char *name);

/*
 * An instance has taken a spare. Returns 1, 0 if there is no such spare any more, or a negative
 * errno; then the instance is forgotten.
 */
int unit_table_take_spare(UnitTable *table, const struct tlob_instance_record *record);

#endif
