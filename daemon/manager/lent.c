/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What is measured for the tlobd of users: a place in a back end, and a share of what there is room
 * for. No state is kept and nothing is settled here: who has asked follows units and files.
 */

#include "manager/lent.h"

#include "base/sentence.h"
#include "manager/internal.h"

/* All users together get one in so many of the places that there are. */
#define LENT_SHARE 2

void manager_handle_lent(Manager *m, const LentHandlers *handlers, void *userdata) {
        m->lent_handlers = handlers;
        m->lent_data = userdata;
}

void manager_configure_lent(Manager *m) {
        /* There is none if the first could not be read. */
        bool any = m->config && m->config->user_bindings_max > 0;

        if (m->lent_handlers)
                m->lent_handlers->configured(any, m->lent_data);
}

static int check_room(const Manager *m, const Binding *binding, char **ret_error) {
        const Config *c = m->config;
        size_t n = 0;

        for (size_t i = 0; i < m->n_lent; i++)
                n += m->lent[i]->lent.user == binding->lent.user;
        if (c->user_bindings_max == 0)
                return sentence_error(-EDQUOT, ret_error,
                                      "The system's tlobd does not measure for users "
                                      "(UserInstanceBindingsMax= in tlobd.conf)");
        if (n >= c->user_bindings_max)
                return sentence_error(-EDQUOT, ret_error,
                                      "User %u has %zu bindings already, as many as "
                                      "UserInstanceBindingsMax= in tlobd.conf allows",
                                      binding->lent.user, n);
        if (m->n_lent >= c->bindings_max / LENT_SHARE)
                return sentence_error(-EDQUOT, ret_error,
                                      "Users have %zu bindings already, half of BindingsMax= in "
                                      "tlobd.conf",
                                      m->n_lent);
        return 0;
}

static const BackendOps *find_lender(const Manager *m) {
        const BackendOps *ops;

        for (size_t i = 0; (ops = backends_get(m->backends, i)); i++)
                if (ops->capabilities & BACKEND_CAN_LEND)
                        return ops;
        return NULL;
}

/* Also what is possible on the whole, but not for users. */
static int check_needs(const BackendOps *ops, const Binding *binding, const BindingFile *file,
                       char **ret_error) {
        const char *lacks;

        if (!ops)
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "The system's tlobd has no back end that measures for users");
        if (binding->resolved.sites.key)
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "Windows with a key are not measured for users");
        lacks = backend_lacks(ops, backend_needs(binding));
        if (lacks)
                return sentence_error(-EOPNOTSUPP, ret_error, "Back end '%s' cannot %s", ops->name,
                                      lacks);
        return ops->can ? ops->can(binding, file, ret_error) : 0;
}

static int attach(Manager *m, const BackendOps *ops, Binding *binding, const BindingFile *file,
                  char **ret_error) {
        Backend *backend;
        int r;

        r = backends_make(m->backends, ops, &backend, ret_error);
        if (r >= 0)
                r = ops->add(backend, binding, file, &binding->measurement.index, ret_error);
        if (r < 0) {
                backends_release(m->backends);
                return r;
        }
        binding->measurement.backend = backend;
        binding->measurement.cost_ns =
                ops->cost ? ops->cost(backend, binding->measurement.index) : 0;
        backends_put(m->backends, binding);
        backends_complete(m->backends);
        return 0;
}

int manager_lend(Manager *m, Binding *binding, unsigned *ret_question, char **ret_error) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        const BackendOps *ops = find_lender(m);
        Binding **lent;
        int r;

        r = check_room(m, binding, ret_error);
        if (r < 0)
                return r;
        lent = reallocarray(m->lent, m->n_lent + 1, sizeof(Binding *));
        if (!lent)
                return -ENOMEM;
        m->lent = lent;
        r = files_resolve(m->files, binding, ret_question, &file, ret_error);
        if (r >= 0)
                r = check_needs(ops, binding, file, ret_error);
        if (r >= 0)
                r = attach(m, ops, binding, file, ret_error);
        if (r < 0)
                return r;
        m->lent[m->n_lent++] = binding;
        return 0;
}

static void forget(Manager *m, const Binding *binding) {
        for (size_t i = 0; i < m->n_lent; i++)
                if (m->lent[i] == binding) {
                        m->lent[i] = m->lent[--m->n_lent];
                        return;
                }
}

void manager_take_back(Manager *m, Binding *binding, Statistics *ret_final,
                       Histogram *ret_lengths) {
        Backend *backend = binding->measurement.backend;

        *ret_final = (Statistics) {};
        *ret_lengths = (Histogram) {};
        (void) backend->ops->remove(backend, binding->measurement.index, ret_final, ret_lengths);
        backends_flush(m->backends, backend);
        backends_take(m->backends, binding);
        binding->measurement.backend = NULL;
        forget(m, binding);
        backends_release(m->backends);
}

size_t manager_count_lent(const Manager *m) {
        return m->n_lent;
}

void manager_on_lent_report(Manager *m, Binding *binding, const Report *report) {
        if (m->lent_handlers)
                m->lent_handlers->report(binding, report, m->lent_data);
}

void manager_evict_lent(Manager *m, Binding *binding, const char *why) {
        Statistics final;
        Histogram lengths;

        manager_take_back(m, binding, &final, &lengths);
        if (m->lent_handlers)
                m->lent_handlers->gone(binding, &final, &lengths, why, m->lent_data);
}
