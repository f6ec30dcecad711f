/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a binding costs processes that it is not for. Who asks may be anyone, and counting reads the
 * lists of mappings of the whole machine: so it is done by the processes that read files, and what
 * was counted a moment ago is told again.
 */

#include "manager/cost.h"

#include "binding/cost.h"
#include "manager/backend-facts.h"

#define FRESH_USEC UINT64_C(2000000)

static bool is_fresh(const BindingUsers *users, uint64_t now) {
        return users->usec > 0 && now - users->usec < FRESH_USEC;
}

/* One that is only verified is gone when the next one is, which may be on the same file. */
static void note_counted(Manager *m, const Binding *binding) {
        CountedFile *counted = &m->counted;

        counted->device = binding->resolved.device;
        counted->inode = binding->resolved.inode;
        counted->users = binding->users;
        if (free_and_strdup(&counted->cgroup, binding->cgroup.path) < 0)
                counted->users.usec = 0;
}

/* Itself, or another one on that file for the same unit; NULL: none has been counted just now. */
static const BindingUsers *find_counted(const Manager *m, const Binding *binding, uint64_t now) {
        const BindingTable *bindings = &m->config->bindings;

        if (is_fresh(&binding->users, now))
                return &binding->users;
        if (is_fresh(&m->counted.users, now) && m->counted.inode == binding->resolved.inode &&
            m->counted.device == binding->resolved.device &&
            streq_empty(m->counted.cgroup, binding->cgroup.path))
                return &m->counted.users;
        for (size_t i = 0; i < bindings->n; i++) {
                const Binding *other = bindings->items[i];

                if (is_fresh(&other->users, now) &&
                    other->resolved.inode == binding->resolved.inode &&
                    other->resolved.device == binding->resolved.device &&
                    streq_empty(other->cgroup.path, binding->cgroup.path))
                        return &other->users;
        }
        return NULL;
}

/* Returns 1, 0 if they cannot be counted, or a negative errno. */
static int count_users(Manager *m, Binding *binding, unsigned *ret_question) {
        const BindingUsers *counted;
        uint64_t now = 0;
        int r;

        if (m->event)
                (void) sd_event_now(m->event, CLOCK_MONOTONIC, &now);
        counted = find_counted(m, binding, now);
        if (counted) {
                binding->users = *counted;
                return 1;
        }
        r = files_count(m->files, binding, ret_question, &binding->users.last);
        if (r == -EINPROGRESS || r == -ENOMEM)
                return r;
        if (r < 0)
                return 0;
        binding->users.usec = now;
        note_counted(m, binding);
        return 1;
}

static int describe(Manager *m, Binding *binding, const BackendOps *ops, unsigned *ret_question,
                    char **ret) {
        const FileUsers *users = NULL;
        int r;

        if (binding_has_file(binding)) {
                r = count_users(m, binding, ret_question);
                if (r < 0)
                        return r;
                users = r > 0 ? &binding->users.last : NULL;
        }
        return binding_describe_cost(binding, users, backends_get_prices(m->backends, ops), ret);
}

int manager_describe_price(Manager *m, const Binding *binding, char **ret) {
        const Backend *backend = binding->measurement.backend;

        *ret = NULL;
        if (!backend)
                return 0;
        return binding_describe_price(binding, backends_get_prices(m->backends, backend->ops), ret);
}

int manager_foretell_price(Manager *m, const Binding *binding, const BackendOps *ops, char **ret) {
        return binding_describe_price(binding, backends_get_prices(m->backends, ops), ret);
}

int manager_describe_cost(Manager *m, Binding *binding, unsigned *ret_question, char **ret) {
        const Backend *backend = binding->measurement.backend;

        *ret = NULL;
        if (!backend ||
            (backend->ops->spares_others &&
             backend->ops->spares_others(binding->measurement.backend, binding->measurement.index)))
                return 0;
        return describe(m, binding, backend->ops, ret_question, ret);
}

int manager_foretell_cost(Manager *m, Binding *binding, const BindingFile *file,
                          const BackendOps *ops, char **ret) {
        *ret = NULL;
        if (ops->can_spare_others && ops->can_spare_others(binding, file))
                return 0;
        return describe(m, binding, ops, &binding->measurement.question, ret);
}

const char *manager_foretell_unwinding_cost(const Binding *binding, const BackendOps *ops) {
        bool taxes =
                binding->resolved.sites.has_frame && ops->taxes_unwinding && ops->taxes_unwinding();

        return taxes ? BINDING_UNWINDING_COST : NULL;
}
