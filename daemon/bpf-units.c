/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Two views of the same: by index, where a program that has a binding looks for its cgroup, and by
 * cgroup, where a program that has a task looks for its units. The second is needed only for sites
 * with many bindings, and may lag behind the first.
 *
 * A unit whose path is known gets its cgroup from a program, at its birth (unit.bpf.h). What systemd
 * tells comes later, and may be older: so a cgroup is never taken from such a unit, as nobody can be
 * in one that is gone, and of two the one with the larger id is newer, because the kernel counts them
 * up.
 */

#include "bpf-units.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "bpf-memory.h"
#include "cgroup.h"
#include "cleanup.h"

typedef struct UnitUse {
        char *name;                  /* NULL: none */
        struct tlob_unit_path *path; /* NULL: not known */
        unsigned n_users;
} UnitUse;

static void unit_use_done(UnitUse *use) {
        free(use->path);
        free(use->name);
        *use = (UnitUse){};
}

int unit_table_init(UnitTable *table, size_t n, int units_fd, int by_cgroup_fd, int by_path_fd,
                    int instances_fd, uint32_t *levels) {
        void *memory;
        int r;

        *table = (UnitTable){
                .n = n,
                .by_cgroup_fd = by_cgroup_fd,
                .by_path_fd = by_path_fd,
                .instances_fd = instances_fd,
                .levels = levels,
        };
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
                unit_use_done(&table->items[i]);
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

/* A path that is too long is left to systemd's signals. */
static int set_path(UnitTable *table, uint32_t unit, const char *path) {
        UnitUse *use = &table->items[unit];

        if (!path || use->path || strlen(path) >= TLOB_UNIT_PATH_MAX)
                return 0;
        use->path = calloc(1, sizeof(*use->path));
        if (!use->path)
                return -ENOMEM;
        strcpy(use->path->path, path);
        return bpf_map_update_elem(table->by_path_fd, use->path, &unit, BPF_ANY) < 0 ? -errno : 0;
}

int unit_table_join(UnitTable *table, const char *name, const char *path, uint32_t *ret_unit) {
        uint32_t unit = find(table, name);
        UnitUse *use = &table->items[unit];
        int r;

        if (unit == TLOB_UNIT_NONE)
                return -ENOSPC;
        if (use->n_users == 0 && name) {
                use->name = strdup(name);
                if (!use->name)
                        return -ENOMEM;
        }
        use->n_users++;
        r = set_path(table, unit, path);
        if (r < 0) {
                unit_table_leave(table, unit);
                return r;
        }
        *ret_unit = unit;
        return 0;
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

static void forget_cgroup(UnitTable *table, uint32_t unit) {
        struct tlob_unit *u = &table->memory[unit];
        uint64_t before = __atomic_exchange_n(&u->cgroup_id, 0, __ATOMIC_SEQ_CST);

        if (before == TLOB_CGROUP_MANY)
                forget_instances(table, unit);
        else if (before)
                (void) bpf_map_delete_elem(table->by_cgroup_fd, &before);
}

void unit_table_leave(UnitTable *table, uint32_t unit) {
        UnitUse *use = &table->items[unit];

        if (unit == TLOB_UNIT_NONE || --use->n_users > 0)
                return;
        if (use->path)
                (void) bpf_map_delete_elem(table->by_path_fd, use->path);
        forget_cgroup(table, unit);
        unit_use_done(use);
}

/* "/a.slice/foo@.service", taken apart. */
typedef struct TemplatePath {
        char directory[TLOB_UNIT_PATH_MAX];
        const char *prefix; /* "foo@.service" */
        size_t prefix_length;
        const char *suffix;
        unsigned level;
} TemplatePath;

static bool template_path_parse(const char *path, TemplatePath *ret) {
        const char *slash = strrchr(path, '/'), *at = slash ? strchr(slash, '@') : NULL;

        if (!at || at[1] != '.')
                return false;
        *ret = (TemplatePath){
                .prefix = slash + 1,
                .prefix_length = (size_t) (at - slash),
                .suffix = at + 1,
        };
        for (const char *p = path; *p != '\0'; p++)
                ret->level += *p == '/';
        memcpy(ret->directory, path, (size_t) (slash - path));
        return true;
}

static bool is_instance(const TemplatePath *template, const char *name) {
        size_t n = strlen(name), suffix = strlen(template->suffix);

        return n > template->prefix_length + suffix &&
               strncmp(name, template->prefix, template->prefix_length) == 0 &&
               streq(name + n - suffix, template->suffix);
}

/* The instances that run already. Those that are made meanwhile are seen by the program. */
static int find_instances(UnitTable *table, uint32_t unit, const TemplatePath *template) {
        _cleanup_close_ int root_fd = cgroup_open_root(), fd = -EBADF;
        _cleanup_closedir_ DIR *dir = NULL;
        const struct dirent *entry;

        fd = root_fd < 0 ? -EBADF
                         : openat(root_fd, template->directory[0] ? template->directory + 1 : ".",
                                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir)
                return 0;
        (void) TAKE_FD(fd);
        while ((entry = readdir(dir))) {
                struct stat st;
                uint64_t id;

                if (!is_instance(template, entry->d_name) ||
                    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                id = st.st_ino;
                if (bpf_map_update_elem(table->instances_fd, &id, &unit, BPF_ANY) < 0)
                        return -errno;
        }
        return 0;
}

int unit_table_set_template(UnitTable *table, uint32_t unit, unsigned root_level) {
        const struct tlob_unit_path *path = table->items[unit].path;
        struct tlob_unit *u = &table->memory[unit];
        TemplatePath template;

        if (!path || !template_path_parse(path->path, &template))
                return -EINVAL;
        if (root_level + template.level >= TLOB_UNIT_LEVELS)
                return -E2BIG;
        if (u->cgroup_id)
                return 0;
        __atomic_fetch_or(table->levels, UINT32_C(1) << (root_level + template.level),
                          __ATOMIC_RELAXED);
        __atomic_store_n(&u->level, root_level + template.level, __ATOMIC_RELAXED);
        __atomic_store_n(&u->cgroup_id, TLOB_CGROUP_MANY, __ATOMIC_RELEASE);
        return find_instances(table, unit, &template);
}

/* Is what systemd told no news for a unit whose births are seen? */
static bool is_old(const UnitTable *table, uint32_t unit, uint64_t known, uint64_t told) {
        return known == told || known == TLOB_CGROUP_MANY ||
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
        __atomic_fetch_or(table->levels, UINT32_C(1) << level, __ATOMIC_RELAXED);
        if (!table->items[unit].path)
                __atomic_store_n(&u->cgroup_id, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&u->level, level, __ATOMIC_RELAXED);
        /* The next one can be born meanwhile. */
        while (!__atomic_compare_exchange_n(&u->cgroup_id, &before, cgroup_id, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                if (is_old(table, unit, before, cgroup_id))
                        return 0;
        if (before)
                (void) bpf_map_delete_elem(table->by_cgroup_fd, &before);
        return 0;
}
