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
        BindingState before = binding->state;

        if (binding_set_state(binding, state, reason) < 0)
                log_oom();
        if (!changed)
                return;

        if (state == BINDING_FAILED)
                (void) journal_binding_failure(binding);
        else if (before == BINDING_FAILED && state == BINDING_ACTIVE)
                (void) journal_binding_recovery(binding);
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

char *manager_unit_to_ask(const char *unit) {
        return unit_name_is_template(unit) ? unit_stand_in_for(unit) : strdup(unit);
}

bool manager_binding_has_unit(const Binding *binding, const char *unit) {
        _cleanup_free_ char *name = binding->unit ? manager_unit_to_ask(binding->unit) : NULL;

        return name && streq(name, unit);
}

/* What systemd says of the binding's unit; NULL if it says nothing. */
static const UnitInfo *unit_of(const Manager *m, const Binding *binding) {
        _cleanup_free_ char *name =
                m->units && binding->unit ? manager_unit_to_ask(binding->unit) : NULL;

        return name ? units_get(m->units, name) : NULL;
}

/* Of a stand-in, it is that of its template: "/a.slice/foo@.service". */
static int learn_cgroup_path(Binding *binding, const UnitInfo *info) {
        static const char instance[] = "@" UNIT_STAND_IN;
        const char *path = info ? info->cgroup_path : NULL, *found;
        _cleanup_free_ char *template = NULL;

        if (!path || !unit_name_is_template(binding->unit))
                return free_and_strdup(&binding->cgroup_path, path);
        found = strstr(strrchr(path, '/'), instance);
        if (!found)
                return -EINVAL;
        if (asprintf(&template, "%.*s@%s", (int) (found - path), path, found + strlen(instance)) <
            0) {
                template = NULL;
                return -ENOMEM;
        }
        return free_and_strdup(&binding->cgroup_path, template);
}

/* Where the binding is confined to. Returns 1 if it can be measured now, 0 if its unit does not run. */
static int confine(Manager *m, Binding *binding) {
        const UnitInfo *info = unit_of(m, binding);
        int r;

        binding->cgroup_id = 0;
        if (!binding->unit)
                return 1;
        r = learn_cgroup_path(binding, info);
        if (r < 0)
                return r;
        if (unit_name_is_template(binding->unit))
                return binding->cgroup_path && info->is_loaded;
        if (!info || !info->cgroup_id)
                return 0;
        binding->cgroup_id = info->cgroup_id;
        binding->cgroup_level = info->cgroup_level;
        return 1;
}

int manager_learn_program(const Manager *m, Binding *binding, char **ret_error) {
        const UnitInfo *info = unit_of(m, binding);
        int r;

        r = free_and_strdup(&binding->program, info ? info->program : NULL);
        if (r < 0)
                return r;
        if (!binding_takes_program(binding) || binding->program)
                return 1;
        if (!info || !info->is_loaded)
                return 0;
        if (info->has_exec)
                return sentence_error(
                        -EINVAL, ret_error,
                        "%s has several programs in its ExecStart=: write Executable=",
                        binding->unit);
        return sentence_error(-EINVAL, ret_error,
                              "%s has no ExecStart=: write Executable= with the program or library "
                              "to be measured",
                              binding->unit);
}

/*
 * Checks and resolves what can be wrong with a binding, whether or not its unit runs. *ret_elf is NULL
 * if it cannot be resolved yet, because the unit or its program is not there.
 */
static int prepare(Manager *m, Binding *binding, ElfFile **ret_elf, bool *ret_runs,
                   char **ret_error) {
        _cleanup_free_ char *error = NULL;
        int r, runs, known;

        r = binding_check(binding, ret_error);
        if (r < 0)
                return r;
        runs = confine(m, binding);
        if (runs < 0)
                return runs;
        known = manager_learn_program(m, binding, ret_error);
        if (known < 0)
                return known;

        *ret_elf = NULL;
        *ret_runs = runs;
        if (!known || (!runs && unit_name_is_template(binding->unit)))
                return 0;
        r = binding_resolve(binding, ret_elf, &error);
        if (r == -ENOENT && !runs)
                return 0;
        if (r < 0 && ret_error)
                *ret_error = TAKE_PTR(error);
        return r;
}

static int wait_for_unit(Manager *m, Binding *binding, bool is_resolved) {
        _cleanup_free_ char *reason = NULL;

        if (asprintf(&reason,
                     is_resolved ? "%s does not run" : "%s does not run, and is not installed",
                     binding->unit) < 0) {
                reason = NULL;
                return -ENOMEM;
        }
        set_state(m, binding, BINDING_WAITING, reason);
        return 0;
}

/* The probes of a unit that does not run are set all the same: they are there when it starts. */
static int settle(Manager *m, Binding *binding, char **ret_error) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        bool runs;
        int r;

        r = prepare(m, binding, &elf, &runs, ret_error);
        if (r < 0)
                return r;
        if (!elf)
                return wait_for_unit(m, binding, false);

        do {
                free(*ret_error);
                *ret_error = NULL;
                r = manager_attach_binding(m, binding, elf, ret_error);
        } while (r == -ENOSPC && manager_give_up_spare(m));
        if (r < 0 && (runs || r != -ENOSPC))
                return r;
        if (!runs)
                return wait_for_unit(m, binding, true);
        set_state(m, binding, BINDING_ACTIVE, NULL);
        return 0;
}

int manager_attach_spare(Manager *m, Binding *binding, char **ret_error) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        bool runs;
        int r;

        r = prepare(m, binding, &elf, &runs, ret_error);
        if (r < 0)
                return r;
        if (!elf || !binding->cgroup_path)
                return -ENOENT;
        return manager_attach_binding(m, binding, elf, ret_error);
}

/* Are its probes where they belong, whatever its unit does? */
static bool probes_fit(const Manager *m, const Binding *binding) {
        const UnitInfo *info = unit_of(m, binding);

        return binding->backend && info && streq_empty(binding->program, info->program) &&
               (unit_name_is_template(binding->unit) ||
                streq_empty(binding->cgroup_path, info->cgroup_path)) &&
               binding_file_is_current(binding);
}

void manager_follow_unit(Manager *m, Binding *binding) {
        int runs, r;

        if (!probes_fit(m, binding)) {
                manager_settle_binding(m, binding);
                return;
        }
        runs = confine(m, binding);
        r = runs < 0 ? runs
                     : binding->backend->ops->set_cgroup(binding->backend, binding->backend_index,
                                                         binding->cgroup_id, binding->cgroup_level);
        if (r >= 0 && !runs)
                r = wait_for_unit(m, binding, true);
        if (r < 0)
                manager_settle_binding(m, binding);
        else if (runs)
                set_state(m, binding, BINDING_ACTIVE, NULL);
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
        manager_complete_backends(m);
}

static void watch_unit(Manager *m, Binding *binding) {
        _cleanup_free_ char *name =
                m->units && binding->unit ? manager_unit_to_ask(binding->unit) : NULL;
        int r;

        if (!name)
                return;
        r = units_watch(m->units, name);
        if (r < 0)
                log_error_errno(r, "Failed to follow '%s': %m", name);
}

static void unwatch_unit(Manager *m, Binding *binding) {
        _cleanup_free_ char *name =
                m->units && binding->unit ? manager_unit_to_ask(binding->unit) : NULL;

        if (name)
                units_unwatch(m->units, name);
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

void manager_adopt_binding(Manager *m, Binding *binding) {
        Binding *old = binding_table_take(&m->config->bindings, binding->name);

        if (old)
                retire(m, old);
        watch_unit(m, binding);
        if (binding_table_put(&m->config->bindings, binding) < 0) {
                log_oom();
                retire(m, binding);
                return;
        }
        bus_emit_binding_added(m->bus, binding);
        notify_status(m);
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

/* What measures the same is handed over, and so is what failed: nobody is told of it again. */
static bool can_hand_over(Manager *m, const Binding *old, Binding *new) {
        _cleanup_free_ char *error = NULL;

        (void) manager_learn_program(m, new, &error);
        return binding_same_probes(old, new);
}

/* The new binding is in the table; old is the one of that name from before, or NULL. */
static void put_in_place(Manager *m, Binding *old, Binding *new) {
        if (!old) {
                introduce(m, new);
                return;
        }
        hand_over(m, old, new);
        /* A program that was installed anew is found now, before its unit starts. */
        if (new->state == BINDING_FAILED || new->error ||
            (new->state == BINDING_WAITING && !probes_fit(m, new)))
                manager_settle_binding(m, new);
        bus_emit_binding_changed(m->bus, new);
}

/* Bindings that are gone, or measure something else, leave first, so that there is room. */
static void retire_old(Manager *m, BindingTable *old, const char *prefix, const BindingTable *new) {
        for (size_t i = old->n; i-- > 0;) {
                Binding *binding = old->items[i], *next;

                if (strncmp(binding->name, prefix, strlen(prefix)) != 0)
                        continue;
                next = binding_table_get(new, binding->name);
                if (!next || !can_hand_over(m, binding, next))
                        retire(m, binding_table_take(old, binding->name));
        }
}

void manager_apply_config(Manager *m, Config *config) {
        _cleanup_(config_freep) Config *old = m->config;

        log_messages(config);
        if (old)
                retire_old(m, &old->bindings, "", &config->bindings);
        m->config = config;
        m->n_applying++;
        for (size_t i = 0; i < config->bindings.n; i++) {
                Binding *binding = config->bindings.items[i];

                put_in_place(m, old ? binding_table_get(&old->bindings, binding->name) : NULL,
                             binding);
        }
        m->n_applying--;
        manager_complete_backends(m);
        notify_status(m);
}

/* Moves one binding of a unit into the table. */
static void apply_one(Manager *m, Config *config, size_t i) {
        BindingTable *bindings = &m->config->bindings;
        _cleanup_(binding_freep) Binding *old = NULL;
        Binding *binding;
        uint64_t budget_ns;

        binding = binding_table_take(&config->bindings, config->bindings.items[i]->name);
        if (config_get_override(m->config, binding->name, &budget_ns))
                binding->budget_ns[TLOB_BUDGET_TOTAL] = budget_ns;
        old = binding_table_take(bindings, binding->name);
        if (binding_table_put(bindings, binding) < 0) {
                log_oom();
                binding_free(binding);
                if (old)
                        retire(m, TAKE_PTR(old));
                return;
        }
        put_in_place(m, old, binding);
}

void manager_apply_unit(Manager *m, const char *unit, Config *config) {
        char prefix[BINDING_UNIT_MAX + 2];

        (void) snprintf(prefix, sizeof(prefix), "%s/", unit);
        log_messages(config);
        retire_old(m, &m->config->bindings, prefix, &config->bindings);
        m->n_applying++;
        while (config->bindings.n > 0)
                apply_one(m, config, config->bindings.n - 1);
        m->n_applying--;
        manager_complete_backends(m);
        notify_status(m);
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

        manager_complete_backends(m);
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
        if (!elf)
                return sentence_error(-ENOENT, ret_error, "%s is not there, or its program is not",
                                      binding->unit);
        return manager_choose_backend(m, binding, elf, ret_backend, ret_reason, ret_error);
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
