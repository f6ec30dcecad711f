/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What people and programs change at run time: bindings are added and removed, and given other
 * budgets. It is on disk before it is answered.
 */

#include "manager/internal.h"

#include "base/sentence.h"
#include "log.h"
#include "manager/bindings.h"
#include "manager/choice.h"
#include "manager/cost.h"
#include "manager/move.h"
#include "manager/settle.h"
#include "manager/state.h"
#include "manager/units.h"
#include "manager/watch.h"
#include "tlob-bus.h"

/*
 * Where bindings and overrides of run time are kept: the first directory persists, the second not.
 */
static const char *runtime_directory(const Manager *m, uint64_t flags) {
        return m->directories[flags & TLOB_FLAG_PERSIST ? 0 : 1];
}

static int name_taken(const Binding *binding, char **ret_error) {
        return sentence_error(-EEXIST, ret_error,
                              "The binding '%s' exists already: it is defined in %s", binding->name,
                              binding->source.place ?: "?");
}

/* Those that are not root may add some, not all that there is room for. */
static int check_share(const Manager *m, const Binding *binding, char **ret_error) {
        const BindingTable *bindings = &m->config->bindings;
        uid_t user = binding->source.added_by;
        unsigned n = 0;

        for (size_t i = 0; user != 0 && i < bindings->n; i++)
                n += bindings->items[i]->source.added_by == user;
        if (user == 0 || n < m->config->bindings_per_user_max)
                return 0;
        return sentence_error(-EDQUOT, ret_error,
                              "User %u has added %u bindings already: remove one, or raise "
                              "BindingsPerUserMax= in tlobd.conf",
                              user, n);
}

/* From here on it is one of the bindings, and on disk. */
static int keep_binding(Manager *m, Binding *binding, uint64_t flags) {
        int r;

        r = config_write_binding(runtime_directory(m, flags), binding);
        if (r >= 0)
                r = binding_table_put(&m->config->bindings, binding);
        if (r < 0)
                (void) config_remove_binding(runtime_directory(m, flags), binding->name);
        return r;
}

/* One that is not enabled need not be there yet, but what is written about it must be right. */
static int settle_new(Manager *m, Binding *binding, char **ret_error) {
        int r;

        if (binding->enabled)
                return manager_try_to_settle(m, binding, ret_error);
        r = binding_check(binding, ret_error);
        if (r >= 0)
                manager_set_state(m, binding, BINDING_DISABLED, NULL);
        return r;
}

int manager_add_binding(Manager *m, Binding *b, uint64_t flags, Binding **ret,
                        unsigned *ret_question, char **ret_error) {
        _cleanup_(binding_freep) Binding *binding = b;
        const Binding *existing;
        int r;

        existing = binding_table_get(&m->config->bindings, binding->name);
        if (existing)
                return name_taken(existing, ret_error);
        r = check_share(m, binding, ret_error);
        if (r < 0)
                return r;

        manager_watch_unit(m, binding);
        r = settle_new(m, binding, ret_error);
        if (r >= 0)
                r = keep_binding(m, binding, flags);
        if (r < 0) {
                manager_detach_binding(m, binding);
                manager_unwatch_file(m, binding);
                manager_unwatch_unit(m, binding);
                *ret_question = binding->measurement.question;
                if (*ret_error)
                        return r;
                return sentence_error(r, ret_error, "Failed to add '%s': %s", binding->name,
                                      strerror(-r));
        }

        manager_complete_bindings(m);
        *ret = TAKE_PTR(binding);
        manager_tell(m, binding_added, *ret);
        manager_notify_status(m);
        return 0;
}

void verdict_done(Verdict *verdict) {
        free(verdict->reason);
        free(verdict->price);
        free(verdict->cost);
        *verdict = (Verdict) {};
}

int manager_verify_binding(Manager *m, Binding *binding, Verdict *ret, char **ret_error) {
        _cleanup_(verdict_done) Verdict verdict = {};
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        const BackendOps *backend;
        bool runs;
        int r;

        binding->wants_copies = true;
        r = manager_prepare_binding(m, binding, &file, &runs, ret_error);
        if (r < 0)
                return r;
        if (!file && ret_error && *ret_error)
                return -ENOENT;
        if (!file)
                return sentence_error(-ENOENT, ret_error,
                                      "%s does not exist, or its program "
                                      "does not",
                                      binding->unit);
        r = manager_choose_backend(m, binding, file, &backend, &verdict.reason, ret_error);
        if (r >= 0)
                r = manager_foretell_price(m, binding, backend, &verdict.price);
        if (r >= 0)
                r = manager_foretell_cost(m, binding, file, backend, &verdict.cost);
        if (r < 0)
                return r;
        verdict.backend = backend->name;
        verdict.unwinding_cost = manager_foretell_unwinding_cost(binding, backend);
        *ret = verdict;
        verdict = (Verdict) {};
        return 0;
}

/* A binding that gets its name later has nothing to do with it. */
static void forget_overrides(Manager *m, const char *name) {
        for (size_t i = 0; i < 2; i++) {
                int r = config_remove_override(m->directories[i], name);

                if (r < 0)
                        log_warning_errno(
                                r, "Failed to remove the budget of '%s' below %s, ignoring: %m",
                                name, m->directories[i]);
        }
        config_forget_override(m->config, name);
}

int manager_remove_binding(Manager *m, const char *name, char **ret_error) {
        Binding *binding;
        int removed = 0, r;

        binding = manager_find_binding(m, name, ret_error);
        if (!binding)
                return -ENXIO;

        /* Those of units never are: their files are not ours. */
        for (size_t i = 0; i < 2 && binding_name_is_valid(name); i++) {
                r = config_remove_binding(m->directories[i], name);
                if (r < 0) {
                        return sentence_error(r, ret_error, "Failed to remove '%s' below %s: %s",
                                              name, m->directories[i], strerror(-r));
                }
                removed += r;
        }
        if (removed > 0)
                forget_overrides(m, name);
        if (removed == 0) {
                return sentence_error(
                        -EPERM, ret_error,
                        "The binding '%s' was not added by 'tlobctl add-binding'; edit %s and "
                        "run 'tlobctl reload'",
                        name, binding->source.place ?: "its file");
        }

        manager_retire_binding(m, binding_table_take(&m->config->bindings, name));
        manager_notify_status(m);
        return 0;
}

/* What the files say now: an override of the other kind, or the configured budget. */
static int forget_budget(Manager *m, Binding *binding) {
        int r;

        for (size_t i = 0; i < 2; i++) {
                r = config_remove_override(m->directories[i], binding->name);
                if (r < 0)
                        return r;
        }
        config_forget_override(m->config, binding->name);
        memcpy(binding->budget_ns, binding->configured_budget_ns, sizeof(binding->budget_ns));
        return 0;
}

static int override_budget(Manager *m, Binding *binding, uint64_t budget_ns, uint64_t flags) {
        int r;

        r = config_write_override(runtime_directory(m, flags), binding->name, budget_ns);
        if (r < 0)
                return r;
        /* What is to stay takes the place of what was to pass. */
        if (flags & TLOB_FLAG_PERSIST) {
                r = config_remove_override(m->directories[1], binding->name);
                if (r < 0)
                        return r;
        }
        binding->budget_ns[TLOB_BUDGET_TOTAL] = budget_ns;
        /* The binding can go and come back before the files are read again. */
        return config_put_override(m->config, binding->name, budget_ns);
}

int manager_set_budget(Manager *m, const char *name, uint64_t budget_ns, uint64_t flags,
                       char **ret_error) {
        Binding *binding;
        int r;

        binding = manager_find_binding(m, name, ret_error);
        if (!binding)
                return -ENXIO;
        if (budget_ns != TLOB_BUDGET_CONFIGURED && binding_check_budget(budget_ns) < 0) {
                return sentence_error(-EINVAL, ret_error,
                                      "A budget must be from 1us to 1h, or "
                                      "infinity");
        }

        if (budget_ns != TLOB_BUDGET_CONFIGURED && !binding_total_fits(binding, budget_ns))
                return sentence_error(-EINVAL, ret_error,
                                      "A budget of '%s' must be longer than its BudgetMinSec=: no "
                                      "window could keep both",
                                      name);

        manager_flush_binding(m, binding);
        if (budget_ns == TLOB_BUDGET_CONFIGURED)
                r = forget_budget(m, binding);
        else
                r = override_budget(m, binding, budget_ns, flags);
        if (r >= 0)
                r = manager_apply_budgets(m, binding);
        if (r < 0) {
                return sentence_error(r, ret_error, "Failed to set the budget of '%s': %s", name,
                                      strerror(-r));
        }

        manager_tell_changed(m, binding);
        return 0;
}
