/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Keeps the lists of bindings at the sites of one kind of probe, and the probes of each site alive
 * while anyone uses them. It knows nothing of windows and budgets.
 *
 * What has no room on the list at the site goes into a scope, a list for one site and one unit in a
 * hash, so that a hundred units with a binding each cost a task no more than its own. How a list is
 * changed while programs walk along it: see bpf/site-list.c.
 */

#include "bpf/sites.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <inttypes.h>

#include "base/sentence.h"
#include "bpf/hits.h"
#include "bpf/site-processes.h"

int site_table_init(SiteTable *table, size_t n, const SiteProbes *probes, int sites_fd,
                    int scopes_fd, uint32_t *generation) {
        int r;

        *table = (SiteTable) {
                .memory = { .map_fd = sites_fd, .n = n, .value_size = sizeof(struct tlob_site) },
                .probes = *probes,
                .scopes_fd = scopes_fd,
                .generation = generation,
        };
        table->items = calloc(n, sizeof(*table->items));
        if (!table->items)
                return -ENOMEM;
        /* Where none was ever made, none can have been left. */
        if (*generation == 0)
                return 0;
        r = bpf_memory_reach(&table->memory, n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                if (site_shared(table, i)->generation) {
                        table->items[i].is_inherited = true;
                        table->end = i + 1;
                }
        return 0;
}

static bool is_dropped(const Site *site) {
        return site->is_inherited && !site->is_needed;
}

/* Of what is in a map: sites that are not there are nobody's any more. */
static bool is_forgotten(const SiteTable *table, uint32_t site) {
        return site >= table->memory.n || is_dropped(&table->items[site]);
}

static void forget_scopes(SiteTable *table) {
        struct tlob_scope_key key, *previous = NULL, last;

        while (bpf_map_get_next_key(table->scopes_fd, previous, &key) == 0)
                if (is_forgotten(table, key.site))
                        (void) bpf_map_delete_elem(table->scopes_fd, &key);
                else {
                        last = key;
                        previous = &last;
                }
}

static void forget_processes(SiteTable *table) {
        struct tlob_process_site key, *previous = NULL, last;

        while (bpf_map_get_next_key(table->probes.process_sites_fd, previous, &key) == 0)
                if (key.side == table->probes.side && is_forgotten(table, key.site))
                        (void) bpf_map_delete_elem(table->probes.process_sites_fd, &key);
                else {
                        last = key;
                        previous = &last;
                }
}

void site_table_need_inherited(SiteTable *table, uint64_t cookie) {
        uint32_t site = (uint32_t) cookie;

        if (site < table->end && table->items[site].is_inherited &&
            site_table_cookie(table, site) == cookie)
                table->items[site].is_needed = true;
}

void site_table_drop_unneeded(SiteTable *table) {
        forget_scopes(table);
        forget_processes(table);
        for (size_t i = 0; i < table->end; i++) {
                if (!is_dropped(&table->items[i]))
                        continue;
                __atomic_store_n(&site_shared(table, i)->generation, 0, __ATOMIC_RELEASE);
                table->items[i].is_inherited = false;
        }
}

void site_table_drop_inherited(SiteTable *table) {
        for (size_t i = 0; i < table->end; i++)
                table->items[i].is_needed = false;
        site_table_drop_unneeded(table);
}

static void site_key_done(SiteKey *key) {
        free((void *) key->offsets);
        free((void *) key->semaphores);
        *key = (SiteKey) {};
}

static int copy_numbers(const uint64_t *numbers, size_t n, const uint64_t **ret) {
        uint64_t *copy = calloc(n, sizeof(*copy));

        if (!copy)
                return -ENOMEM;
        memcpy(copy, numbers, n * sizeof(*copy));
        *ret = copy;
        return 0;
}

/* With places of its own. */
static int site_key_copy(const SiteKey *key, SiteKey *ret) {
        SiteKey copy = *key;
        int r;

        copy.offsets = copy.semaphores = NULL;
        r = copy_numbers(key->offsets, key->n_offsets, &copy.offsets);
        if (r >= 0 && key->semaphores)
                r = copy_numbers(key->semaphores, key->n_offsets, &copy.semaphores);
        if (r < 0) {
                site_key_done(&copy);
                return r;
        }
        *ret = copy;
        return 0;
}

void site_table_done(SiteTable *table) {
        for (size_t i = 0; i < table->end; i++) {
                Site *site = &table->items[i];

                uprobe_detach(site->uprobe);
                free(site->users);
                site_key_done(&site->key);
        }
        free(table->items);
        bpf_memory_done(&table->memory);
        *table = (SiteTable) {};
}

static bool site_key_equal(const SiteKey *a, const SiteKey *b) {
        size_t size = a->n_offsets * sizeof(*a->offsets);

        return a->kind == b->kind && a->dev == b->dev && a->inode == b->inode &&
               a->is_return == b->is_return && a->by_process == b->by_process &&
               a->partner == b->partner && a->owner == b->owner && a->n_offsets == b->n_offsets &&
               memcmp(a->offsets, b->offsets, size) == 0 && !a->semaphores == !b->semaphores &&
               (!a->semaphores || memcmp(a->semaphores, b->semaphores, size) == 0);
}

/* The site with that key, else a free one, else NULL. */
static Site *site_table_find(SiteTable *table, const SiteKey *key) {
        Site *unused = NULL;

        for (size_t i = 0; i < table->end; i++) {
                Site *site = &table->items[i];

                if (site->n_users > 0 && site_key_equal(&site->key, key))
                        return site;
                if (site->n_users == 0 && !site->is_inherited && !unused)
                        unused = site;
        }
        if (!unused && table->end < table->memory.n)
                unused = &table->items[table->end++];
        return unused;
}

static int join_scope(SiteTable *table, uint32_t site, const SiteUser *user) {
        struct tlob_scope_key key = { .site = site, .unit = user->unit };
        struct tlob_scope scope = {};

        if (bpf_map_lookup_elem(table->scopes_fd, &key, &scope) < 0 && errno != ENOENT)
                return -errno;
        if (!scope_add(&scope, user->binding))
                return -E2BIG;
        return bpf_map_update_elem(table->scopes_fd, &key, &scope, BPF_ANY);
}

static void leave_scope(SiteTable *table, uint32_t site, const SiteUser *user) {
        struct tlob_scope_key key = { .site = site, .unit = user->unit };
        struct tlob_scope scope = {};

        if (bpf_map_lookup_elem(table->scopes_fd, &key, &scope) < 0)
                return;
        scope_remove(&scope, user->binding);
        if (scope.n > 0)
                (void) bpf_map_update_elem(table->scopes_fd, &key, &scope, BPF_EXIST);
        else
                (void) bpf_map_delete_elem(table->scopes_fd, &key);
}

static int join_lists(SiteTable *table, uint32_t index, const SiteUser *user) {
        struct tlob_site *site = site_shared(table, index);
        int r;

        if (site_list_add(site, user->binding))
                return 0;
        r = join_scope(table, index, user);
        if (r < 0)
                return r;
        site_list_count_scoped(site, user->unit);
        return 0;
}

static void leave_lists(SiteTable *table, uint32_t index, const SiteUser *user) {
        struct tlob_site *site = site_shared(table, index);

        if (site_list_remove(site, user->binding))
                return;
        site_list_uncount_scoped(site, user->unit);
        leave_scope(table, index, user);
}

/* Do they have probes at one place, as in one process each, and in all? */
static bool sites_meet(const Site *a, const Site *b) {
        if (a->key.kind != b->key.kind || a->key.dev != b->key.dev || a->key.inode != b->key.inode)
                return false;
        for (size_t i = 0; i < a->key.n_offsets; i++)
                for (size_t j = 0; j < b->key.n_offsets; j++)
                        if (a->key.offsets[i] == b->key.offsets[j])
                                return true;
        return false;
}

static bool is_of_marks(const Site *site) {
        return site->n_users > 0 && site_users_are_of_marks(site->users, site->n_users);
}

/* Windows without traps are for one binding only. */
static bool has_whole_marks(const SiteTable *table, const Site *site) {
        if (!is_of_marks(site))
                return false;
        for (size_t i = 0; i < table->end; i++) {
                const Site *other = &table->items[i];

                if (other != site && other->n_users > 0 && sites_meet(other, site))
                        return false;
        }
        return true;
}

static void note_marks(const SiteTable *table, const Site *site) {
        __atomic_store_n(&site_shared(table, site_index(table, site))->whole_marks,
                         has_whole_marks(table, site), __ATOMIC_RELEASE);
}

static void site_note_users(const SiteTable *table, const Site *site) {
        bool apart = site_users_are_apart(site->users, site->n_users);

        __atomic_store_n(&site_shared(table, site_index(table, site))->apart, apart,
                         __ATOMIC_RELEASE);
        note_marks(table, site);
        if (site->n_users > 1)
                return;
        /* It has users for the first time, or none any more: that changes others, too. */
        for (size_t i = 0; i < table->end; i++) {
                const Site *other = &table->items[i];

                if (other != site && is_of_marks(other) && sites_meet(other, site))
                        note_marks(table, other);
        }
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

static size_t count_users(const Site *site, uint32_t unit) {
        size_t n = 0;

        for (size_t i = 0; i < site->n_users; i++)
                n += site->users[i].unit == unit;
        return n;
}

static int call_error(int r, char **ret_reason) {
        if (r == -EOPNOTSUPP)
                return sentence_error(
                        r, ret_reason,
                        "System calls can be measured on x86-64 only, and this kernel "
                        "must have CONFIG_FTRACE_SYSCALLS");
        return sentence_error(r, ret_reason,
                              "The kernel refused the programs on its system calls: %s",
                              strerror(-r));
}

static int event_error(int r, char **ret_reason) {
        return sentence_error(r, ret_reason, "The kernel refused the BPF program on its event: %s",
                              strerror(-r));
}

static int join_error(int r, const Site *site, const SiteKey *key, const SiteUser *user,
                      char **ret_reason) {
        switch (r) {
        case -E2BIG:
                return sentence_error(
                        r, ret_reason,
                        "There are %zu bindings %s at this place already, and no room "
                        "for more; remove one of them",
                        count_users(site, user->unit),
                        user->unit == TLOB_UNIT_NONE ? "without a unit" : "of this unit");
        case -ENOSPC:
                return sentence_error(r, ret_reason,
                                      "All places for probes are in use; raise BindingsMax= in "
                                      "tlobd.conf");
        case -ENOTSUPP_KERNEL:
                if (site_is_event(key))
                        return event_error(r, ret_reason);
                return sentence_error(r, ret_reason,
                                      "The kernel cannot put a probe on one of these instructions, "
                                      "the first at offset 0x%" PRIx64 ": name another place",
                                      key->offsets[0]);
        case -EINVAL:
                if (site_is_event(key))
                        return event_error(r, ret_reason);
                return sentence_error(r, ret_reason,
                                      "The kernel refused a probe at offset 0x%" PRIx64
                                      ": there is one already, of another binding or "
                                      "another tracer, with another semaphore (USDT) or none",
                                      key->offsets[0]);
        default:
                if (site_is_of_call(key))
                        return call_error(r, ret_reason);
                if (site_is_event(key))
                        return event_error(r, ret_reason);
                return sentence_error(r, ret_reason,
                                      "The kernel refused a probe at offset 0x%" PRIx64 ": %s",
                                      key->offsets[0], strerror(-r));
        }
}

uint64_t site_table_get_cost(const SiteTable *table, uint32_t site) {
        return hits_read(table->probes.hits_fd, site, table->probes.n_cpus, 0) *
               table->items[site].key.price_ns;
}

uint64_t site_table_get_total_cost(const SiteTable *table) {
        uint64_t total = 0;

        for (size_t i = 0; i < table->end; i++)
                if (table->items[i].n_users > 0)
                        total += site_table_get_cost(table, (uint32_t) i);
        return total;
}

bool site_table_is_missed(const SiteTable *table, uint32_t site, uint64_t n_hits) {
        uint64_t n = hits_read(table->probes.hits_fd, site, table->probes.n_cpus, 0);
        uint64_t n_outside =
                __atomic_load_n(&site_shared(table, site)->n_outside, __ATOMIC_RELAXED);

        return n >= n_hits && n_outside >= n;
}

/* A site that nobody used: from its generation on, its probe can be told from those before it. */
static int site_begin(SiteTable *table, Site *site, const SiteKey *key, int file_fd) {
        struct tlob_site *shared = site_shared(table, site_index(table, site));
        _cleanup_close_ int fd = -EBADF;
        SiteKey copy;
        int r;

        if (key->by_process) {
                fd = fcntl(file_fd, F_DUPFD_CLOEXEC, 0);
                if (fd < 0)
                        return -errno;
        }
        r = hits_clear(table->probes.hits_fd, site_index(table, site), table->probes.n_cpus);
        if (r >= 0)
                r = site_key_copy(key, &copy);
        if (r < 0)
                return r;
        *site = (Site) {
                .key = copy,
                .file_fd = TAKE_FD(fd),
                .reach = { .by_process = key->by_process },
        };
        *shared = (struct tlob_site) {
                .user_event = key->kind == SITE_USER_EVENT ? (uint32_t) key->offsets[0] : 0,
                .price_ns = key->price_ns,
        };
        __atomic_store_n(&shared->generation, ++*table->generation, __ATOMIC_RELEASE);
        return 0;
}

static void site_end(SiteTable *table, Site *site) {
        site_detach_call(table, &site->key);
        free(site->users);
        site->users = NULL;
        site_forget_processes(table, site);
        site_key_done(&site->key);
        __atomic_store_n(&site_shared(table, site_index(table, site))->generation, 0,
                         __ATOMIC_RELEASE);
}

/* One more user: on the list, and with a probe that is set. */
static int site_admit(SiteTable *table, Site *site, int file_fd, const SiteUser *user) {
        uint32_t index = site_index(table, site);
        int r;

        r = site_add_user(site, user);
        if (r < 0)
                return r;
        /* Before the binding is there; and when it goes, after it is gone. */
        site_note_users(table, site);
        r = join_lists(table, index, user);
        if (r >= 0 && !site->uprobe && !site->key.by_process) {
                r = site_attach(table, site, file_fd, site_table_cookie(table, index), 0,
                                &site->uprobe);
                if (r < 0)
                        leave_lists(table, index, user);
        }
        if (r < 0) {
                site_remove_user(site, user);
                site_note_users(table, site);
        }
        return r;
}

int site_table_join(SiteTable *table, const SiteKey *key, int file_fd, const SiteUser *user,
                    uint32_t *ret_site, char **ret_reason) {
        Site *site;
        int r;

        r = bpf_memory_reach(&table->memory, table->end + 1);
        if (r < 0)
                return r;
        site = site_table_find(table, key);
        if (!site)
                return join_error(-ENOSPC, NULL, key, user, ret_reason);
        if (site->n_users == 0) {
                r = site_begin(table, site, key, file_fd);
                if (r < 0)
                        return r;
        }
        r = site_admit(table, site, file_fd, user);
        if (r < 0) {
                r = join_error(r, site, key, user, ret_reason);
                if (site->n_users == 0)
                        site_end(table, site);
                return r;
        }
        *ret_site = site_index(table, site);
        return 0;
}

void site_table_leave(SiteTable *table, uint32_t index, const SiteUser *user) {
        Site *site = &table->items[index];

        leave_lists(table, index, user);
        site_remove_user(site, user);
        site_note_users(table, site);
        if (site->n_users > 0)
                return;
        site_end(table, site);
        detacher_push(table->probes.detacher, TAKE_PTR(site->uprobe));
}
