/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What happens to bindings: they are settled into the state that configuration and unit ask for,
 * added and removed at run time, given other budgets, and replaced by a reload.
 *
 * A binding that cannot be set up is failed, with a reason, and stops nobody else. A reload builds
 * the whole new configuration first; a binding that measures the same as before is handed over with
 * its probes, open windows and counters.
 */

#include <systemd/sd-daemon.h>

#include "journal.h"
#include "log.h"
#include "manager.h"
#include "sentence.h"
#include "tlob-bus.h"

/* The line of "systemctl status". */
static void notify_status(const Manager *m) {
        const BindingTable *bindings = &m->config->bindings;

        (void) sd_notifyf(false, "STATUS=%zu bindings, %zu active, %zu failed", bindings->n,
                          binding_table_count(bindings, BINDING_ACTIVE),
                          binding_table_count(bindings, BINDING_FAILED));
}

static void set_state(Manager *m, Binding *binding, BindingState state, const char *reason) {
        bool changed = binding->state != state || !streq_empty(binding->state_reason, reason);

        if (binding_set_state(binding, state, reason) < 0)
                log_oom();
        if (!changed)
                return;

        if (state == BINDING_FAILED)
                (void) journal_binding_failure(binding);
        bus_emit_binding_changed(m->bus, binding);
        notify_status(m);
}

void manager_detach_binding(Manager *m, Binding *binding) {
        Histogram lengths = {};
        BackendSlot *slot;
        Statistics final;

        if (!binding->backend)
                return;

        slot = manager_slot_of(m, binding->backend);
        if (slot->ops->remove(slot->backend, binding->backend_index, &final, &lengths) >= 0) {
                statistics_add(&binding->past, &final);
                if (binding_keep_lengths(binding, &lengths) < 0)
                        log_oom();
        }
        /* The last reports are still the binding's. */
        manager_dispatch(m, slot);
        slot->bindings[binding->backend_index] = NULL;
        binding->backend = NULL;
        free(binding->backend_reason);
        binding->backend_reason = NULL;
        manager_release_backends(m);
}

/* Where the binding is confined to. Returns 1 if it can be measured now, 0 if its unit does not run. */
static int confine(Manager *m, Binding *binding, char **ret_error) {
        binding->cgroup_id = 0;
        if (!binding->unit)
                return 1;

        if (unit_name_is_template(binding->unit))
                return sentence_error(
                        -EOPNOTSUPP, ret_error,
                        "Unit=%s is a template; name an instance of it, as in foo@bar.service",
                        binding->unit);

        if (m->units)
                binding->cgroup_id =
                        units_get_cgroup(m->units, binding->unit, &binding->cgroup_level);
        return binding->cgroup_id != 0;
}

/* Checks and resolves what can be wrong with a binding, whether or not its unit runs. */
static int prepare(Manager *m, Binding *binding, ElfFile **ret_elf, bool *ret_runs,
                   char **ret_error) {
        int r, runs;

        r = binding_check(binding, ret_error);
        if (r < 0)
                return r;
        runs = confine(m, binding, ret_error);
        if (runs < 0)
                return runs;
        r = binding_resolve(binding, ret_elf, ret_error);
        if (r < 0)
                return r;
        *ret_runs = runs;
        return 0;
}

static int settle(Manager *m, Binding *binding, char **ret_error) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        bool runs;
        int r;

        r = prepare(m, binding, &elf, &runs, ret_error);
        if (r < 0)
                return r;
        if (!runs) {
                _cleanup_free_ char *reason = NULL;

                if (asprintf(&reason, "%s does not run", binding->unit) < 0)
                        return -ENOMEM;
                set_state(m, binding, BINDING_WAITING, reason);
                return 0;
        }

        r = manager_attach_binding(m, binding, elf, ret_error);
        if (r < 0)
                return r;
        set_state(m, binding, BINDING_ACTIVE, NULL);
        return 0;
}

void manager_settle_binding(Manager *m, Binding *binding) {
        _cleanup_free_ char *error = NULL;
        int r;

        manager_detach_binding(m, binding);

        if (binding->error) {
                set_state(m, binding, BINDING_FAILED, binding->error);
                return;
        }
        if (!binding->enabled) {
                set_state(m, binding, BINDING_DISABLED, NULL);
                return;
        }

        r = settle(m, binding, &error);
        if (r < 0) {
                _cleanup_free_ char *reason = NULL;

                reason = sentence_make("%s: %s", binding->source ?: binding->name,
                                       error ?: strerror(-r));
                set_state(m, binding, BINDING_FAILED, reason);
        }
}

static void watch_unit(Manager *m, Binding *binding) {
        int r;

        if (!m->units || !binding->unit || unit_name_is_template(binding->unit))
                return;
        r = units_watch(m->units, binding->unit);
        if (r < 0)
                log_error_errno(r, "Failed to follow '%s': %m", binding->unit);
}

static void unwatch_unit(Manager *m, Binding *binding) {
        if (m->units && binding->unit)
                units_unwatch(m->units, binding->unit);
}

/* A new binding of the configuration, or of AddBinding(), that is in the table already. */
static void introduce(Manager *m, Binding *binding) {
        watch_unit(m, binding);
        manager_settle_binding(m, binding);
        bus_emit_binding_added(m->bus, binding);
}

/* A binding that leaves the table. */
static void retire(Manager *m, Binding *binding) {
        manager_detach_binding(m, binding);
        statistics_add(&m->past, &binding->past);
        unwatch_unit(m, binding);
        bus_emit_binding_removed(m->bus, binding);
        binding_free(binding);
}

static int apply_budgets(Binding *binding) {
        if (!binding->backend)
                return 0;
        return binding->backend->ops->set_budget(binding->backend, binding->backend_index,
                                                 binding->budget_ns);
}

/* The new binding goes on where the old one of that name was. */
static void hand_over(Manager *m, Binding *from, Binding *to) {
        BackendSlot *slot = from->backend ? manager_slot_of(m, from->backend) : NULL;
        int r;

        binding_adopt(to, from);
        if (slot)
                slot->bindings[to->backend_index] = to;

        r = apply_budgets(to);
        /* Another back end can perhaps. */
        if (r == -EOPNOTSUPP)
                manager_settle_binding(m, to);
        else if (r < 0)
                log_error_errno(r, "Failed to change the budget of '%s': %m", to->name);
}

static void log_messages(const Config *config) {
        for (size_t i = 0; i < config->n_messages; i++)
                log_full_errno(config->messages[i].level, 0, "%s", config->messages[i].text);
}

/* Two bindings of the same name from two configurations. */
static bool can_hand_over(const Binding *old, const Binding *new) {
        return binding_same_probes(old, new) && !new->error && old->state != BINDING_FAILED &&
               old->enabled == new->enabled;
}

/* Bindings that are gone, or measure something else, leave first, so that there is room. */
static void retire_old(Manager *m, Config *old, const Config *new) {
        for (size_t i = old->bindings.n; i-- > 0;) {
                Binding *binding = old->bindings.items[i];
                const Binding *next = binding_table_get(&new->bindings, binding->name);

                if (!next || !can_hand_over(binding, next))
                        retire(m, binding_table_take(&old->bindings, binding->name));
        }
}

static void introduce_new(Manager *m, Config *old) {
        for (size_t i = 0; i < m->config->bindings.n; i++) {
                Binding *binding = m->config->bindings.items[i];
                Binding *before = old ? binding_table_get(&old->bindings, binding->name) : NULL;

                if (before) {
                        hand_over(m, before, binding);
                        bus_emit_binding_changed(m->bus, binding);
                } else
                        introduce(m, binding);
        }
}

int manager_reload(Manager *m) {
        _cleanup_(config_freep) Config *old = NULL, *new = NULL;
        int r;

        r = config_load(m->directories, &new);
        if (r < 0)
                return log_error_errno(r, "Failed to read the configuration: %m");
        log_messages(new);
        if (m->violations.size == 0) {
                r = violation_log_init(&m->violations, new->violations_max);
                if (r < 0)
                        return log_oom();
        }

        bus_emit_reloading(m->bus, true);
        old = m->config;
        if (old)
                retire_old(m, old, new);
        m->config = TAKE_PTR(new);
        introduce_new(m, old);
        bus_emit_reloading(m->bus, false);

        notify_status(m);
        log_info("%zu bindings are configured.", m->config->bindings.n);
        return 0;
}

/* Where bindings and overrides of run time are kept: the first directory persists, the second not. */
static const char *runtime_directory(const Manager *m, uint64_t flags) {
        return m->directories[flags & TLOB_FLAG_PERSIST ? 0 : 1];
}

static int name_taken(const Binding *binding, char **ret_error) {
        return sentence_error(-EEXIST, ret_error,
                              "The binding '%s' exists already: it is defined in %s", binding->name,
                              binding->source ?: "?");
}

/* From here on it is one of the bindings, and on disk. */
static int keep_binding(Manager *m, Binding *binding, uint64_t flags) {
        int r;

        r = config_write_binding(runtime_directory(m, flags), binding);
        if (r < 0)
                return r;
        r = binding_table_put(&m->config->bindings, binding);
        if (r < 0)
                (void) config_remove_binding(runtime_directory(m, flags), binding->name);
        return r;
}

int manager_add_binding(Manager *m, Binding *b, uint64_t flags, Binding **ret, char **ret_error) {
        _cleanup_(binding_freep) Binding *binding = b;
        const Binding *existing;
        int r;

        existing = binding_table_get(&m->config->bindings, binding->name);
        if (existing)
                return name_taken(existing, ret_error);

        watch_unit(m, binding);
        r = settle(m, binding, ret_error);
        if (r >= 0)
                r = keep_binding(m, binding, flags);
        if (r < 0) {
                manager_detach_binding(m, binding);
                unwatch_unit(m, binding);
                if (*ret_error)
                        return r;
                return sentence_error(r, ret_error, "Failed to add '%s': %s", binding->name,
                                      strerror(-r));
        }

        *ret = TAKE_PTR(binding);
        bus_emit_binding_added(m->bus, *ret);
        notify_status(m);
        return 0;
}

int manager_verify_binding(Manager *m, Binding *binding, const char **ret_backend,
                           char **ret_reason, char **ret_error) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        bool runs;
        int r;

        r = prepare(m, binding, &elf, &runs, ret_error);
        if (r < 0)
                return r;
        return manager_choose_backend(m, binding, elf, ret_backend, ret_reason, ret_error);
}

int manager_remove_binding(Manager *m, const char *name, char **ret_error) {
        Binding *binding;
        int removed = 0, r;

        binding = manager_find_binding(m, name, ret_error);
        if (!binding)
                return -ENXIO;

        for (size_t i = 0; i < 2; i++) {
                r = config_remove_binding(m->directories[i], name);
                if (r < 0) {
                        return sentence_error(r, ret_error, "Failed to remove '%s' below %s: %s",
                                              name, m->directories[i], strerror(-r));
                }
                removed += r;
        }
        if (removed == 0) {
                return sentence_error(
                        -EPERM, ret_error,
                        "The binding '%s' was not added by 'tlobctl add-binding'; edit %s and "
                        "run 'tlobctl reload'",
                        name, binding->source ?: "its file");
        }

        retire(m, binding_table_take(&m->config->bindings, name));
        notify_status(m);
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
        return 0;
}

int manager_set_budget(Manager *m, const char *name, uint64_t budget_ns, uint64_t flags,
                       char **ret_error) {
        Binding *binding;
        int r;

        binding = manager_find_binding(m, name, ret_error);
        if (!binding)
                return -ENXIO;
        if (budget_ns != TLOB_BUDGET_CONFIGURED && binding_check_budget(budget_ns) < 0) {
                return sentence_error(-EINVAL, ret_error, "A budget is 1us to 1h, or infinity");
        }

        if (budget_ns == TLOB_BUDGET_CONFIGURED)
                r = forget_budget(m, binding);
        else
                r = override_budget(m, binding, budget_ns, flags);
        if (r >= 0)
                r = apply_budgets(binding);
        /* Another back end can perhaps. */
        if (r == -EOPNOTSUPP) {
                manager_settle_binding(m, binding);
                r = 0;
        }
        if (r < 0) {
                return sentence_error(r, ret_error, "Failed to set the budget of '%s': %s", name,
                                      strerror(-r));
        }

        bus_emit_binding_changed(m->bus, binding);
        return 0;
}
