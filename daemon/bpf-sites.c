/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Keeps the maps of sites and scopes of one kind of probe in step with the bindings, and the probe
 * of each site alive while anyone uses it. It knows nothing of windows and budgets.
 *
 * Order matters, since probes hit at any time: a scope is in its map before the site says to look
 * there, and the site is in its map before the probe is set. Taking away goes the other way round.
 */

#include "bpf-sites.h"

#include <bpf/bpf.h>
#include <inttypes.h>

#include "sentence.h"

struct Site {
        SiteKey key;
        unsigned n_users;
        unsigned level_users[TLOB_LEVELS_MAX];
        struct tlob_site map; /* what the map holds */
        Uprobe *uprobe;
};

int site_table_init(SiteTable *table, size_t n, int prog_fd, int sites_fd, int scopes_fd,
                    bool multi) {
        Site *items;

        items = calloc(n, sizeof(*items));
        if (!items)
                return -ENOMEM;

        *table = (SiteTable){
                .items = items,
                .n = n,
                .prog_fd = prog_fd,
                .sites_fd = sites_fd,
                .scopes_fd = scopes_fd,
                .multi = multi,
        };
        return 0;
}

void site_table_done(SiteTable *table) {
        for (size_t i = 0; i < table->n; i++)
                uprobe_detach(table->items[i].uprobe);
        free(table->items);
        *table = (SiteTable){};
}

static bool site_key_equal(const SiteKey *a, const SiteKey *b) {
        return a->dev == b->dev && a->inode == b->inode && a->offset == b->offset &&
               a->is_return == b->is_return;
}

/* The site with that key, else a free one, else NULL. */
static Site *site_table_find(SiteTable *table, const SiteKey *key) {
        Site *unused = NULL;

        for (size_t i = 0; i < table->n; i++) {
                Site *site = &table->items[i];

                if (site->n_users > 0 && site_key_equal(&site->key, key))
                        return site;
                if (site->n_users == 0 && !unused)
                        unused = site;
        }
        return unused;
}

static uint32_t site_index(const SiteTable *table, const Site *site) {
        return (uint32_t) (site - table->items);
}

static struct tlob_scope_key scope_key(uint32_t site, const SiteUser *user) {
        return (struct tlob_scope_key){ .cgroup_id = user->cgroup_id, .site = site };
}

static int scope_add(SiteTable *table, uint32_t site, const SiteUser *user) {
        struct tlob_scope_key key = scope_key(site, user);
        struct tlob_scope scope = {};

        if (bpf_map_lookup_elem(table->scopes_fd, &key, &scope) < 0 && errno != ENOENT)
                return -errno;
        if (scope.n >= TLOB_SCOPE_MAX)
                return -E2BIG;

        scope.binding[scope.n++] = user->binding;
        return bpf_map_update_elem(table->scopes_fd, &key, &scope, BPF_ANY) < 0 ? -errno : 0;
}

static void scope_remove(SiteTable *table, uint32_t site, const SiteUser *user) {
        struct tlob_scope_key key = scope_key(site, user);
        struct tlob_scope scope = {};

        if (bpf_map_lookup_elem(table->scopes_fd, &key, &scope) < 0)
                return;

        for (uint32_t i = 0; i < scope.n; i++)
                if (scope.binding[i] == user->binding) {
                        scope.binding[i] = scope.binding[--scope.n];
                        break;
                }
        if (scope.n > 0)
                (void) bpf_map_update_elem(table->scopes_fd, &key, &scope, BPF_EXIST);
        else
                (void) bpf_map_delete_elem(table->scopes_fd, &key);
}

static uint8_t user_level(const SiteUser *user) {
        return user->cgroup_id ? (uint8_t) user->cgroup_level : TLOB_LEVEL_UNCONFINED;
}

static int site_add_level(Site *site, uint8_t level) {
        uint32_t i;

        for (i = 0; i < site->map.n_levels; i++)
                if (site->map.level[i] == level)
                        break;
        if (i == TLOB_LEVELS_MAX)
                return -E2BIG;
        if (i == site->map.n_levels)
                site->map.level[site->map.n_levels++] = level;
        site->level_users[i]++;
        return 0;
}

static void site_remove_level(Site *site, uint8_t level) {
        for (uint32_t i = 0; i < site->map.n_levels; i++) {
                uint32_t last = site->map.n_levels - 1;

                if (site->map.level[i] != level || --site->level_users[i] > 0)
                        continue;
                site->map.level[i] = site->map.level[last];
                site->level_users[i] = site->level_users[last];
                site->level_users[last] = 0;
                site->map.n_levels--;
                break;
        }
}

static int site_write(SiteTable *table, const Site *site) {
        uint32_t index = site_index(table, site);

        return bpf_map_update_elem(table->sites_fd, &index, &site->map, BPF_ANY) < 0 ? -errno : 0;
}

static int site_attach(SiteTable *table, Site *site, int file_fd) {
        UprobeSpec spec = {
                .prog_fd = table->prog_fd,
                .multi = table->multi,
                .file_fd = file_fd,
                .offset = site->key.offset,
                .is_return = site->key.is_return,
                .cookie = TLOB_COOKIE(site_index(table, site), site->map.generation),
        };

        return uprobe_attach(&spec, &site->uprobe);
}

static int join_error(int r, const SiteKey *key, char **ret_reason) {
        switch (r) {
        case -E2BIG:
                return sentence_error(
                        r, ret_reason,
                        "At most %i bindings can share a probe and a unit, and at most "
                        "%i depths of units can share a probe; remove one of them",
                        TLOB_SCOPE_MAX, TLOB_LEVELS_MAX);
        case -ENOSPC:
                return sentence_error(r, ret_reason,
                                      "All places for probes are taken; raise BindingsMax= in "
                                      "tlobd.conf");
        default:
                return sentence_error(r, ret_reason,
                                      "The kernel refused a probe at offset 0x%" PRIx64 ": %s",
                                      key->offset, strerror(-r));
        }
}

int site_table_join(SiteTable *table, const SiteKey *key, int file_fd, const SiteUser *user,
                    uint32_t *ret_site, char **ret_reason) {
        Site *site, before;
        int r;

        site = site_table_find(table, key);
        if (!site)
                return join_error(-ENOSPC, key, ret_reason);

        before = *site;
        if (site->n_users == 0)
                *site = (Site){ .key = *key, .map.generation = ++table->generation };

        r = scope_add(table, site_index(table, site), user);
        if (r < 0)
                goto restore;
        r = site_add_level(site, user_level(user));
        if (r >= 0)
                r = site_write(table, site);
        if (r >= 0 && !site->uprobe)
                r = site_attach(table, site, file_fd);
        if (r < 0)
                goto remove_scope;

        site->n_users++;
        *ret_site = site_index(table, site);
        return 0;

remove_scope:
        scope_remove(table, site_index(table, site), user);
restore:
        *site = before;
        (void) site_write(table, site);
        return join_error(r, key, ret_reason);
}

Uprobe *site_table_leave(SiteTable *table, uint32_t index, const SiteUser *user) {
        Site *site = &table->items[index];

        site_remove_level(site, user_level(user));
        if (--site->n_users == 0)
                site->map = (struct tlob_site){};
        (void) site_write(table, site);
        scope_remove(table, index, user);

        return site->n_users == 0 ? TAKE_PTR(site->uprobe) : NULL;
}
