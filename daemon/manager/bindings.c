/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The bindings that there are: a reload, or a unit with other files, brings new ones in the place
 * of old ones. A reload builds the whole new configuration first; a binding that measures the same
 * as before is handed over with its probes, open windows and counters.
 */

#include "manager/bindings.h"

#include "base/unit-name.h"
#include "log.h"
#include "manager/choice.h"
#include "manager/follow.h"
#include "manager/move.h"
#include "manager/reports.h"
#include "manager/settle.h"
#include "manager/state.h"
#include "manager/tolerance.h"
#include "manager/units.h"
#include "manager/watch.h"

#define MANY_BINDINGS 32

/* A new binding of the configuration, or of AddBinding(), that is in the table already. */
static void introduce(Manager *m, Binding *binding) {
        manager_watch_unit(m, binding);
        manager_settle_binding(m, binding);
        manager_tell(m, binding_added, binding);
}

void manager_retire_binding(Manager *m, Binding *binding) {
        manager_detach_binding(m, binding);
        manager_unwatch_file(m, binding);
        statistics_add(&m->past, &binding->measurement.past.statistics);
        manager_unwatch_unit(m, binding);
        manager_announce_suppressed(m, binding);
        manager_tell(m, binding_removed, binding);
        binding_free(binding);
}

void manager_adopt_binding(Manager *m, Binding *binding) {
        Binding *old = binding_table_take(&m->config->bindings, binding->name);

        if (old)
                manager_retire_binding(m, old);
        manager_watch_unit(m, binding);
        if (binding_table_put(&m->config->bindings, binding) < 0) {
                log_oom();
                manager_retire_binding(m, binding);
                return;
        }
        manager_tell(m, binding_added, binding);
        manager_notify_status(m);
}

/* The new binding goes on where the old one of that name was. */
static void hand_over(Manager *m, Binding *from, Binding *to) {
        int r;

        if (memcmp(from->budget_ns, to->budget_ns, sizeof(to->budget_ns)) != 0)
                manager_flush_binding(m, from);
        binding_adopt(to, from);
        if (to->measurement.backend)
                backends_put(m->backends, to);

        manager_follow_tolerance(m, to);
        r = manager_apply_budgets(m, to);
        if (r < 0)
                log_error_errno(r, "Failed to change the budget of '%s': %m", to->name);
}

void manager_log_messages(const Config *config) {
        for (size_t i = 0; i < config->n_messages; i++)
                log_full_errno(config->messages[i].level, 0, "%s", config->messages[i].text);
        if (config->n_more_messages > 0)
                log_warning("%zu more problems in the configuration are not listed.",
                            config->n_more_messages);
}

/* The new binding is in the table; old is the one of that name from before, or NULL. */
static void put_in_place(Manager *m, Binding *old, Binding *new) {
        if (!old) {
                introduce(m, new);
                return;
        }
        hand_over(m, old, new);
        /*
         * What is wrong now may be no matter of its probes. A program that was installed anew is
         * found now, before its unit starts.
         */
        if (new->measurement.state == BINDING_FAILED || new->source.error ||
            binding_check(new, NULL) < 0 ||
            (new->measurement.state == BINDING_WAITING && !manager_probes_fit(m, new)) ||
            (new->measurement.state == BINDING_ACTIVE && !manager_file_fits(m, new)))
                manager_settle_binding(m, new);
        manager_tell_changed(m, new);
}

/* Bindings that are gone, or measure something else, leave first, so that there is room. */
static void retire_old(Manager *m, BindingTable *old, const char *prefix, const BindingTable *new) {
        for (size_t i = old->n; i-- > 0;) {
                Binding *binding = old->items[i], *next;

                if (strncmp(binding->name, prefix, strlen(prefix)) != 0)
                        continue;
                next = binding_table_get(new, binding->name);
                /* What failed is handed over, too: nobody is told of it again. */
                if (!next || !binding_same_probes(binding, next))
                        manager_retire_binding(m, binding_table_take(old, binding->name));
        }
}

/* As tlob-mark-join.h has it. */
#define MARKS_SOCKET "/run/tlob/marks"

static void configure(Manager *m) {
        const Config *config = m->config;

        backends_configure(m->backends, &(BackendConfig) {
                                                .files = m->files,
                                                .deadline_mode = config->deadline_mode,
                                                .bindings_max = config->bindings_max,
                                                .tasks_max = config->tasks_max,
                                                .ring_buffer_size = config->ring_buffer_size,
                                                .mark_pages_max = config->mark_pages_max,
                                                .marks_socket = MARKS_SOCKET,
                                                .leave_out_self = true,
                                                .keep_fd = m->keep_in ? &m->keep_fd : NULL,
                                        });
        manager_limit_reports(m);
        templates_set_spares(m->templates, config->spare_instances);
}

void manager_apply_config(Manager *m, Config *config) {
        _cleanup_(config_freep) Config *old = m->config;

        manager_log_messages(config);
        if (old)
                retire_old(m, &old->bindings, "", &config->bindings);
        m->config = config;
        configure(m);
        if (config->bindings.n > MANY_BINDINGS)
                files_expect_many(m->files);
        m->n_applying++;
        for (size_t i = 0; i < config->bindings.n; i++) {
                Binding *binding = config->bindings.items[i];

                put_in_place(m, old ? binding_table_get(&old->bindings, binding->name) : NULL,
                             binding);
        }
        m->n_applying--;
        manager_complete_bindings(m);
        manager_notify_status(m);
}

/* Moves one binding of a unit into the table. */
static void apply_one(Manager *m, Config *config, size_t i) {
        BindingTable *bindings = &m->config->bindings;
        _cleanup_(binding_freep) Binding *old = NULL;
        Binding *binding;

        binding = binding_table_take(&config->bindings, config->bindings.items[i]->name);
        (void) config_override_budget(m->config, binding);
        old = binding_table_take(bindings, binding->name);
        if (binding_table_put(bindings, binding) < 0) {
                log_oom();
                binding_free(binding);
                if (old)
                        manager_retire_binding(m, TAKE_PTR(old));
                return;
        }
        put_in_place(m, old, binding);
}

void manager_apply_unit(Manager *m, const char *unit, Config *config) {
        char prefix[UNIT_NAME_MAX + 2];

        (void) snprintf(prefix, sizeof(prefix), "%s/", unit);
        manager_log_messages(config);
        retire_old(m, &m->config->bindings, prefix, &config->bindings);
        m->n_applying++;
        while (config->bindings.n > 0)
                apply_one(m, config, config->bindings.n - 1);
        m->n_applying--;
        manager_complete_bindings(m);
        manager_notify_status(m);
}
