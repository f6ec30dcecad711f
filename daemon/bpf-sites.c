/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Keeps the lists of bindings at the sites of one kind of probe, and the probe of each site alive while
 * anyone uses it. It knows nothing of windows and budgets.
 *
 * A list is changed while programs walk along it, place by place: a binding that leaves makes a hole,
 * and one that comes fills it. What has no room at the site goes into a scope, a list for one site and one
 * unit in a hash, so that a hundred units with a binding each cost a task no more than its own.
 */

#include "bpf-sites.h"

#include <bpf/bpf.h>
#include <inttypes.h>

#include "bpf-memory.h"
#include "sentence.h"

struct Site {
        SiteKey key;
        SiteUser *users;
        unsigned n_users;
        Uprobe *uprobe;
};

int site_table_init(SiteTable *table, size_t n, int prog_fd, int sites_fd, int scopes_fd,
                    bool multi) {
        void *memory;
        int r;

        *table = (SiteTable){
                .n = n,
                .prog_fd = prog_fd,
                .scopes_fd = scopes_fd,
                .multi = multi,
        };
        table->items = calloc(n, sizeof(*table->items));
        if (!table->items)
                return -ENOMEM;
        r = bpf_memory_map(sites_fd, n, sizeof(*table->memory), &memory);
        if (r < 0)
                return r;
        table->memory = memory;
        return 0;
}

void site_table_done(SiteTable *table) {
        for (size_t i = 0; table->items && i < table->n; i++) {
                uprobe_detach(table->items[i].uprobe);
                free(table->items[i].users);
        }
        free(table->items);
        bpf_memory_unmap(table->memory, table->n, sizeof(*table->memory));
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

uint64_t site_table_cookie(const SiteTable *table, uint32_t site) {
        return TLOB_COOKIE(site, table->memory[site].generation);
}

static int scope_add(SiteTable *table, uint32_t site, const SiteUser *user) {
        struct tlob_scope_key key = { .site = site, .unit = user->unit };
        struct tlob_scope scope = {};

        if (bpf_map_lookup_elem(table->scopes_fd, &key, &scope) < 0 && errno != ENOENT)
                return -errno;
        if (scope.n >= TLOB_SCOPE_BINDINGS_MAX)
                return -E2BIG;

        scope.binding[scope.n++] = user->binding;
        return bpf_map_update_elem(table->scopes_fd, &key, &scope, BPF_ANY) < 0 ? -errno : 0;
}

static void scope_remove(SiteTable *table, uint32_t site, const SiteUser *user) {
        struct tlob_scope_key key = { .site = site, .unit = user->unit };
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

/* The place of a binding in the list at the site itself, TLOB_SITE_BINDINGS_MAX if it is not there. */
static uint32_t list_find(const struct tlob_site *site, uint32_t binding) {
        uint32_t i;

        for (i = 0; i < site->n; i++)
                if (site->binding[i] == binding)
                        return i;
        return binding == TLOB_NO_BINDING ? i : TLOB_SITE_BINDINGS_MAX;
}

static void count_scoped(struct tlob_site *site, const SiteUser *user, uint32_t by) {
        if (user->unit == TLOB_UNIT_NONE)
                __atomic_store_n(&site->n_unconfined, site->n_unconfined + by, __ATOMIC_RELEASE);
        __atomic_store_n(&site->n_scoped, site->n_scoped + by, __ATOMIC_RELEASE);
}

static int list_add(SiteTable *table, uint32_t index, const SiteUser *user) {
        struct tlob_site *site = &table->memory[index];
        uint32_t place = list_find(site, TLOB_NO_BINDING);

        if (place == TLOB_SITE_BINDINGS_MAX) {
                int r = scope_add(table, index, user);

                if (r < 0)
                        return r;
                count_scoped(site, user, 1);
        } else {
                __atomic_store_n(&site->binding[place], user->binding, __ATOMIC_RELEASE);
                if (place == site->n)
                        __atomic_store_n(&site->n, place + 1, __ATOMIC_RELEASE);
        }
        __atomic_store_n(&site->n_bindings, site->n_bindings + 1, __ATOMIC_RELEASE);
        return 0;
}

static void list_remove(SiteTable *table, uint32_t index, const SiteUser *user) {
        struct tlob_site *site = &table->memory[index];
        uint32_t place = list_find(site, user->binding);

        __atomic_store_n(&site->n_bindings, site->n_bindings - 1, __ATOMIC_RELEASE);
        if (place == TLOB_SITE_BINDINGS_MAX) {
                count_scoped(site, user, (uint32_t) -1);
                scope_remove(table, index, user);
                return;
        }
        __atomic_store_n(&site->binding[place], TLOB_NO_BINDING, __ATOMIC_RELEASE);
        while (site->n > 0 && site->binding[site->n - 1] == TLOB_NO_BINDING)
                __atomic_store_n(&site->n, site->n - 1, __ATOMIC_RELEASE);
}

/* Could two of them be for one task of a unit? */
static bool users_are_apart(const Site *site) {
        for (unsigned i = 0; i < site->n_users; i++) {
                if (site->users[i].unit == TLOB_UNIT_NONE || site->users[i].many)
                        return false;
                for (unsigned j = 0; j < i; j++)
                        if (site->users[i].unit == site->users[j].unit)
                                return false;
        }
        return true;
}

static void site_set_apart(SiteTable *table, const Site *site, bool apart) {
        __atomic_store_n(&table->memory[site_index(table, site)].apart, apart, __ATOMIC_RELEASE);
}

static int site_add_user(Site *site, const SiteUser *user) {
        SiteUser *users;

        users = reallocarray(site->users, site->n_users + 1, sizeof(*users));
        if (!users)
                return -ENOMEM;
        site->users = users;
        site->users[site->n_users++] = *user;
        return 0;
}

static void site_remove_user(Site *site, const SiteUser *user) {
        for (unsigned i = 0; i < site->n_users; i++)
                if (site->users[i].binding == user->binding) {
                        site->users[i] = site->users[--site->n_users];
                        return;
                }
}

static int site_attach(SiteTable *table, Site *site, int file_fd) {
        UprobeSpec spec = {
                .prog_fd = table->prog_fd,
                .multi = table->multi,
                .file_fd = file_fd,
                .offset = site->key.offset,
                .is_return = site->key.is_return,
                .cookie = site_table_cookie(table, site_index(table, site)),
        };

        return uprobe_attach(&spec, &site->uprobe);
}

static int join_error(int r, const SiteKey *key, char **ret_reason) {
        switch (r) {
        case -E2BIG:
                return sentence_error(
                        r, ret_reason,
                        "At most %i bindings of one unit can share a probe with those "
                        "of other units; remove one of them",
                        TLOB_SCOPE_BINDINGS_MAX);
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

/* A site that nobody used: from its generation on, its probe can be told from those before it. */
static void site_begin(SiteTable *table, Site *site, const SiteKey *key) {
        struct tlob_site *shared = &table->memory[site_index(table, site)];

        *site = (Site){ .key = *key };
        *shared = (struct tlob_site){};
        __atomic_store_n(&shared->generation, ++table->generation, __ATOMIC_RELEASE);
}

static void site_end(SiteTable *table, Site *site) {
        free(site->users);
        site->users = NULL;
        __atomic_store_n(&table->memory[site_index(table, site)].generation, 0, __ATOMIC_RELEASE);
}

/* One more user: on the list, and with a probe that is set. */
static int site_admit(SiteTable *table, Site *site, int file_fd, const SiteUser *user) {
        uint32_t index = site_index(table, site);
        int r;

        r = site_add_user(site, user);
        if (r < 0)
                return r;
        /* Before the binding is there; and when it goes, after it is gone. */
        site_set_apart(table, site, users_are_apart(site));
        r = list_add(table, index, user);
        if (r >= 0 && !site->uprobe) {
                r = site_attach(table, site, file_fd);
                if (r < 0)
                        list_remove(table, index, user);
        }
        if (r < 0) {
                site_remove_user(site, user);
                site_set_apart(table, site, users_are_apart(site));
        }
        return r;
}

int site_table_join(SiteTable *table, const SiteKey *key, int file_fd, const SiteUser *user,
                    uint32_t *ret_site, char **ret_reason) {
        Site *site;
        int r;

        site = site_table_find(table, key);
        if (!site)
                return join_error(-ENOSPC, key, ret_reason);
        if (site->n_users == 0)
                site_begin(table, site, key);

        r = site_admit(table, site, file_fd, user);
        if (r < 0) {
                if (site->n_users == 0)
                        site_end(table, site);
                return join_error(r, key, ret_reason);
        }
        *ret_site = site_index(table, site);
        return 0;
}

Uprobe *site_table_leave(SiteTable *table, uint32_t index, const SiteUser *user) {
        Site *site = &table->items[index];

        list_remove(table, index, user);
        site_remove_user(site, user);
        if (site->n_users > 0) {
                site_set_apart(table, site, users_are_apart(site));
                return NULL;
        }
        site_end(table, site);
        return TAKE_PTR(site->uprobe);
}
