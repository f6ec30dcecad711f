/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Two views of the same: by index, where a program that has a binding looks for its cgroup, and by
 * cgroup, where a program that has a task looks for its units. The second is needed only for sites
 * with many bindings, and may lag behind the first.
 *
 * A unit whose path is known gets its cgroup from a program, at its birth (unit.bpf.h). What
 * systemd tells comes later, and may be older: so a cgroup is never taken from such a unit, as
 * nobody can be in one that is gone, and of two the one with the larger id is newer, because the
 * kernel counts them up.
 *
 * A spare is a unit that has no path yet: a program gives it one, when an instance of its template
 * is born that has no unit of its own, and tells. Until that is read, only the program knows of it.
 */

#include "bpf/units.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/unit-name.h"
#include "bpf/memory.h"
#include "cgroup.h"

typedef struct UnitUse {
        char *name;                      /* NULL: none */
        struct tlob_unit_path *path;     /* NULL: not known */
        struct tlob_unit_path *spare_of; /* name of the template; NULL: it is no spare */
        unsigned n_users;
        unsigned n_followers;
        bool is_pending;   /* the programs do not know path and spare_of yet */
        bool is_inherited; /* it is in the maps, and no binding has joined it yet */
} UnitUse;

static void unit_use_done(UnitUse *use) {
        free(use->spare_of);
        free(use->path);
        free(use->name);
        *use = (UnitUse) {};
}

static void set_pending(UnitTable *table, uint32_t unit) {
        if (!table->items[unit].is_pending)
                table->n_pending++;
        table->items[unit].is_pending = true;
}

static void clear_pending(UnitTable *table, uint32_t unit) {
        if (table->items[unit].is_pending)
                table->n_pending--;
        table->items[unit].is_pending = false;
}

/* Filled up with zeros, as the programs look for it. Returns 0, -ENAMETOOLONG, -ENOMEM. */
static int path_new(const char *text, struct tlob_unit_path **ret) {
        struct tlob_unit_path *path;

        /* The programs take one that fills it up for one that was cut off. */
        if (strlen(text) >= sizeof(path->path) - 1)
                return -ENAMETOOLONG;
        path = calloc(1, sizeof(*path));
        if (!path)
                return -ENOMEM;
        strcpy(path->path, text);
        *ret = path;
        return 0;
}

/* What cannot be a path is none. */
static int inherit_path(const struct tlob_unit_path *kept, struct tlob_unit_path **ret) {
        int r;

        if (!kept->path[0])
                return 0;
        r = path_new(kept->path, ret);
        return r == -ENAMETOOLONG ? 0 : r;
}

static int inherit_unit(UnitTable *table, uint32_t unit) {
        const KeptUnit *kept = &table->kept[unit];
        UnitUse *use = &table->items[unit];
        int r;

        /* Who follows it now says so anew, and looks for all its processes then. */
        table->memory[unit].followed = 0;
        use->is_inherited = true;
        if (!kept->name[0])
                return 0;
        use->name = strdup(kept->name);
        if (!use->name)
                return -ENOMEM;
        r = inherit_path(&kept->path, &use->path);
        if (r >= 0 && !use->path)
                r = inherit_path(&kept->spare_of, &use->spare_of);
        /* Perhaps they are not in the maps yet. */
        if (use->path || use->spare_of)
                set_pending(table, unit);
        return r;
}

/* One that has no name there may have a cgroup: nobody else gets its place before that is gone. */
static bool was_in_use(const UnitTable *table, uint32_t unit) {
        return table->kept[unit].name[0] || table->memory[unit].cgroup_id;
}

static int inherit(UnitTable *table) {
        int r = 0;

        *table->n_followed = 0;
        for (uint32_t i = TLOB_UNIT_NONE + 1; r >= 0 && table->kept && i < table->n; i++)
                if (was_in_use(table, i))
                        r = inherit_unit(table, i);
        return r;
}

int unit_table_init(UnitTable *table, size_t n, const UnitMaps *maps, struct tlob_levels *levels,
                    uint32_t *n_followed, unsigned root_level, KeptUnit *kept) {
        void *memory;
        int r;

        *table = (UnitTable) {
                .n = n,
                .by_cgroup_fd = maps->by_cgroup,
                .by_path_fd = maps->by_path,
                .instances_fd = maps->instances,
                .spares_fd = maps->spares,
                .levels = levels,
                .n_followed = n_followed,
                .root_level = root_level,
                .kept = kept,
        };
        table->items = calloc(n, sizeof(*table->items));
        if (!table->items)
                return -ENOMEM;
        r = bpf_memory_map(maps->units, n, sizeof(*table->memory), &memory);
        if (r < 0)
                return r;
        table->memory = memory;
        return inherit(table);
}

void unit_table_done(UnitTable *table) {
        for (size_t i = 0; table->items && i < table->n; i++)
                unit_use_done(&table->items[i]);
        free(table->items);
        bpf_memory_unmap(table->memory, table->n, sizeof(*table->memory));
        *table = (UnitTable) {};
}

/* The unit of that name, else a free place, else TLOB_UNIT_NONE. */
static uint32_t find(const UnitTable *table, const char *name) {
        uint32_t unused = TLOB_UNIT_NONE;

        for (uint32_t i = TLOB_UNIT_NONE + 1; i < table->n; i++) {
                const UnitUse *use = &table->items[i];

                if (use->n_users == 0 && !use->is_inherited && unused == TLOB_UNIT_NONE)
                        unused = i;
                if ((use->n_users > 0 || use->is_inherited) && name && streq_empty(use->name, name))
                        return i;
        }
        return unused;
}

/* A path that is too long is left to systemd's signals; that of a spare is told. */
static int set_path(UnitTable *table, uint32_t unit, const char *text) {
        UnitUse *use = &table->items[unit];
        int r;

        if (!text || use->path || use->spare_of)
                return 0;
        r = path_new(text, &use->path);
        if (r < 0)
                return r == -ENAMETOOLONG ? 0 : r;
        set_pending(table, unit);
        return 0;
}

/* A unit that has no name, or too long a one, is not known to the next daemon. */
static void keep(UnitTable *table, uint32_t unit) {
        const UnitUse *use = &table->items[unit];
        KeptUnit *kept;

        if (!table->kept)
                return;
        kept = &table->kept[unit];
        __atomic_store_n(&kept->name[0], '\0', __ATOMIC_SEQ_CST);
        if (!use->name || !use->name[0] || strlen(use->name) >= sizeof(kept->name))
                return;
        kept->path = use->path ? *use->path : (struct tlob_unit_path) {};
        kept->spare_of = use->spare_of ? *use->spare_of : (struct tlob_unit_path) {};
        /* We may be killed meanwhile. */
        strcpy(kept->name + 1, use->name + 1);
        __atomic_store_n(&kept->name[0], use->name[0], __ATOMIC_RELEASE);
}

/* One more user. */
static int admit(UnitTable *table, uint32_t unit, const char *path) {
        int r;

        table->items[unit].is_inherited = false;
        table->items[unit].n_users++;
        r = set_path(table, unit, path);
        if (r < 0) {
                unit_table_leave(table, unit);
                return r;
        }
        keep(table, unit);
        return 0;
}

int unit_table_join(UnitTable *table, const char *name, const char *path, uint32_t *ret_unit) {
        uint32_t unit = find(table, name);
        UnitUse *use = &table->items[unit];
        int r;

        if (unit == TLOB_UNIT_NONE)
                return -ENOSPC;
        if (use->n_users == 0 && name && !use->is_inherited) {
                use->name = strdup(name);
                if (!use->name)
                        return -ENOMEM;
        }
        r = admit(table, unit, path);
        if (r < 0)
                return r;
        *ret_unit = unit;
        return 0;
}

int unit_table_join_again(UnitTable *table, uint32_t unit, const char *path) {
        const UnitUse *use;

        if (unit == TLOB_UNIT_NONE || unit >= table->n)
                return -ENOENT;
        use = &table->items[unit];
        if (use->n_users == 0 && !(use->is_inherited && use->name))
                return -ENOENT;
        return admit(table, unit, path);
}

void unit_table_follow(UnitTable *table, uint32_t unit) {
        if (unit == TLOB_UNIT_NONE || table->items[unit].n_followers++ > 0)
                return;
        __atomic_fetch_add(table->n_followed, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&table->memory[unit].followed, 1, __ATOMIC_RELEASE);
}

void unit_table_unfollow(UnitTable *table, uint32_t unit) {
        if (unit == TLOB_UNIT_NONE || --table->items[unit].n_followers > 0)
                return;
        __atomic_store_n(&table->memory[unit].followed, 0, __ATOMIC_RELEASE);
        __atomic_fetch_sub(table->n_followed, 1, __ATOMIC_RELAXED);
}

bool unit_table_is_followed(const UnitTable *table, uint32_t unit) {
        return unit != TLOB_UNIT_NONE && table->items[unit].n_followers > 0;
}

static void forget_instances(UnitTable *table, uint32_t unit) {
        uint64_t id, *previous = NULL, last;
        uint32_t of;

        while (bpf_map_get_next_key(table->instances_fd, previous, &id) == 0) {
                bool is_ours =
                        bpf_map_lookup_elem(table->instances_fd, &id, &of) == 0 && of == unit;

                if (is_ours)
                        (void) bpf_map_delete_elem(table->instances_fd, &id);
                else {
                        last = id;
                        previous = &last;
                }
        }
}

/* Takes a cgroup or a path out of its map, unless it is another unit's by now. */
static void forget_key(int map_fd, const void *key, uint32_t unit) {
        uint32_t known;

        if (bpf_map_lookup_elem(map_fd, key, &known) == 0 && known == unit)
                (void) bpf_map_delete_elem(map_fd, key);
}

static void forget_cgroup(UnitTable *table, uint32_t unit) {
        struct tlob_unit *u = &table->memory[unit];
        uint64_t before = __atomic_exchange_n(&u->cgroup_id, 0, __ATOMIC_SEQ_CST);

        if (before == TLOB_CGROUP_MANY)
                forget_instances(table, unit);
        else if (before && before != TLOB_CGROUP_SPARE)
                forget_key(table->by_cgroup_fd, &before, unit);
        __atomic_store_n(&u->levels, 0, __ATOMIC_RELAXED);
}

/* Nobody takes it any more; it may have been taken just now. */
static void forget_spare(UnitTable *table, uint32_t unit) {
        UnitUse *use = &table->items[unit];
        struct tlob_spares spares;

        if (use->spare_of && bpf_map_lookup_elem(table->spares_fd, use->spare_of, &spares) == 0) {
                uint32_t n = 0;

                for (uint32_t i = 0; i < spares.n && i < TLOB_SPARES_MAX; i++)
                        if (spares.unit[i] != unit)
                                spares.unit[n++] = spares.unit[i];
                spares.n = n;
                if (n > 0)
                        (void) bpf_map_update_elem(table->spares_fd, use->spare_of, &spares,
                                                   BPF_EXIST);
                else
                        (void) bpf_map_delete_elem(table->spares_fd, use->spare_of);
        }
        free(use->spare_of);
        use->spare_of = NULL;
}

static void end(UnitTable *table, uint32_t unit) {
        UnitUse *use = &table->items[unit];

        /* The predecessor may have put it there. */
        if (use->path)
                forget_key(table->by_path_fd, use->path, unit);
        forget_spare(table, unit);
        forget_cgroup(table, unit);
        clear_pending(table, unit);
        unit_use_done(use);
        keep(table, unit);
}

void unit_table_leave(UnitTable *table, uint32_t unit) {
        if (unit != TLOB_UNIT_NONE && --table->items[unit].n_users == 0)
                end(table, unit);
}

void unit_table_drop_inherited(UnitTable *table) {
        for (uint32_t i = TLOB_UNIT_NONE + 1; i < table->n; i++)
                if (table->items[i].is_inherited)
                        end(table, i);
}

/* "foo@.service" */
typedef struct Template {
        uint32_t unit;
        const char *name;
} Template;

/* At which depths a task's cgroups have to be looked at. */
static void level_add(UnitTable *table, unsigned level) {
        __atomic_fetch_or(&table->levels->units, UINT32_C(1) << level, __ATOMIC_RELAXED);
}

static int note_instance(UnitTable *table, const Template *template, int dir_fd, const char *name,
                         unsigned level) {
        struct stat st;
        uint64_t id;

        /* It may have ended. */
        if (level >= TLOB_UNIT_LEVELS || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        id = st.st_ino;
        level_add(table, level);
        __atomic_fetch_or(&table->levels->instances, UINT32_C(1) << level, __ATOMIC_RELAXED);
        __atomic_fetch_or(&table->memory[template->unit].levels, UINT32_C(1) << level,
                          __ATOMIC_RELAXED);
        return bpf_map_update_elem(table->instances_fd, &id, &template->unit, BPF_ANY);
}

/*
 * The instances that run already, in this slice and those below: systemd's units are nowhere else.
 * Those that are made meanwhile are seen by the program. level: of what is in it.
 */
static int find_instances(UnitTable *table, const Template *template, int slice_fd,
                          unsigned level) {
        _cleanup_close_ int fd = slice_fd;
        _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;
        int r = 0;

        if (!dir)
                return 0;
        (void) TAKE_FD(fd);
        while (r >= 0 && (entry = readdir(dir))) {
                const char *suffix = strrchr(entry->d_name, '.');

                if (unit_name_is_instance(entry->d_name, template->name))
                        r = note_instance(table, template, dirfd(dir), entry->d_name, level);
                else if (suffix && streq(suffix, ".slice"))
                        r = find_instances(table, template,
                                           openat(dirfd(dir), entry->d_name,
                                                  O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                           level + 1);
        }
        return r;
}

int unit_table_set_template(UnitTable *table, uint32_t unit, const char *name, unsigned level) {
        struct tlob_unit *u = &table->memory[unit];
        const Template template = { .unit = unit, .name = name };

        if (!unit_name_is_template(name))
                return -EINVAL;
        if (level >= TLOB_UNIT_LEVELS)
                return -E2BIG;
        if (u->cgroup_id)
                return 0;
        level_add(table, level);
        __atomic_store_n(&u->level, level, __ATOMIC_RELAXED);
        __atomic_store_n(&u->cgroup_id, TLOB_CGROUP_MANY, __ATOMIC_RELEASE);
        return find_instances(table, &template, cgroup_open_root(), table->root_level + 1);
}

int unit_table_set_spare(UnitTable *table, uint32_t unit, const char *name) {
        UnitUse *use = &table->items[unit];
        int r;

        if (use->spare_of || use->path)
                return 0;
        r = path_new(name, &use->spare_of);
        if (r < 0)
                return r;
        set_pending(table, unit);
        keep(table, unit);
        return 0;
}

static bool is_listed(const struct tlob_spares *spares, uint32_t unit) {
        for (uint32_t i = 0; i < spares->n && i < TLOB_SPARES_MAX; i++)
                if (spares->unit[i] == unit)
                        return true;
        return false;
}

static int complete_spare(UnitTable *table, uint32_t unit) {
        const struct tlob_unit_path *of = table->items[unit].spare_of;
        struct tlob_unit *u = &table->memory[unit];
        uint64_t before = __atomic_load_n(&u->cgroup_id, __ATOMIC_ACQUIRE);
        struct tlob_spares spares = {};

        if (bpf_map_lookup_elem(table->spares_fd, of, &spares) < 0 && errno != ENOENT)
                return -errno;
        /* An instance has taken it, and that is still to be read. */
        if (before && before != TLOB_CGROUP_SPARE)
                return 0;
        /* It was one before us; whoever made it one may have been killed before it was listed. */
        if (before && is_listed(&spares, unit))
                return 0;
        if (spares.n >= TLOB_SPARES_MAX)
                return -ENOSPC;
        spares.unit[spares.n++] = unit;
        if (!before)
                __atomic_store_n(&u->cgroup_id, TLOB_CGROUP_SPARE, __ATOMIC_RELEASE);
        return bpf_map_update_elem(table->spares_fd, of, &spares, BPF_ANY);
}

static int complete_path(UnitTable *table, uint32_t unit) {
        UnitUse *use = &table->items[unit];
        uint32_t known;

        if (bpf_map_update_elem(table->by_path_fd, use->path, &unit, BPF_NOEXIST) >= 0)
                return 0;
        if (errno != EEXIST)
                return -errno;
        if (bpf_map_lookup_elem(table->by_path_fd, use->path, &known) == 0 && known == unit)
                return 0;
        free(use->path);
        use->path = NULL;
        keep(table, unit);
        return 0;
}

int unit_table_complete(UnitTable *table) {
        int error = 0;

        for (uint32_t i = TLOB_UNIT_NONE + 1; i < table->n && table->n_pending > 0; i++) {
                const UnitUse *use = &table->items[i];
                int r;

                if (!use->is_pending)
                        continue;
                clear_pending(table, i);
                r = use->path ? complete_path(table, i) : complete_spare(table, i);
                if (r < 0)
                        error = r;
        }
        return error;
}

/* It was taken back in the moment in which it was taken. */
static void forget_path(UnitTable *table, const struct tlob_unit_path *path, uint32_t unit) {
        const struct tlob_unit_path *known = table->items[unit].path;

        if (!known || !streq(known->path, path->path))
                forget_key(table->by_path_fd, path, unit);
}

int unit_table_take_spare(UnitTable *table, const struct tlob_instance_record *record) {
        _cleanup_free_ struct tlob_unit_path *path = NULL;
        _cleanup_free_ char *name = NULL;
        uint64_t taken;
        UnitUse *use;
        int r;

        if (record->unit >= table->n)
                return -EINVAL;
        use = &table->items[record->unit];
        taken = __atomic_load_n(&table->memory[record->unit].cgroup_id, __ATOMIC_ACQUIRE);
        if (!use->spare_of || taken == TLOB_CGROUP_SPARE) {
                forget_path(table, &record->path, record->unit);
                return 0;
        }
        r = path_new(record->path.path, &path);
        if (r < 0)
                return r;
        name = strdup(path->path);
        if (!name)
                return -ENOMEM;
        forget_spare(table, record->unit);
        free(use->name);
        use->name = TAKE_PTR(name);
        use->path = TAKE_PTR(path);
        keep(table, record->unit);
        return 1;
}

/* Is what systemd told no news for a unit whose births are seen? */
static bool is_old(const UnitTable *table, uint32_t unit, uint64_t known, uint64_t told) {
        return known == told || known == TLOB_CGROUP_MANY || known == TLOB_CGROUP_SPARE ||
               (table->items[unit].path && told < known);
}

int unit_table_set_cgroup(UnitTable *table, uint32_t unit, uint64_t cgroup_id, uint32_t level) {
        struct tlob_unit *u = &table->memory[unit];
        __u64 before = __atomic_load_n(&u->cgroup_id, __ATOMIC_ACQUIRE);

        if (unit == TLOB_UNIT_NONE || is_old(table, unit, before, cgroup_id))
                return 0;
        if (level >= TLOB_UNIT_LEVELS)
                return -E2BIG;
        if (!cgroup_id) {
                forget_cgroup(table, unit);
                return 0;
        }

        if (bpf_map_update_elem(table->by_cgroup_fd, &cgroup_id, &unit, BPF_ANY) < 0)
                return -errno;
        level_add(table, level);
        if (!table->items[unit].path)
                __atomic_store_n(&u->cgroup_id, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&u->level, level, __ATOMIC_RELAXED);
        /* The next one can be born meanwhile. */
        while (!__atomic_compare_exchange_n(&u->cgroup_id, &before, cgroup_id, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                if (is_old(table, unit, before, cgroup_id))
                        return 0;
        if (before)
                forget_key(table->by_cgroup_fd, &before, unit);
        return 0;
}
