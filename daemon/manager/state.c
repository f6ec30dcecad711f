/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The states of bindings, and who is told when one changes: journal, observer, and the line of
 * "systemctl status". Which state a binding takes on is decided elsewhere.
 */

#include "manager/state.h"

#include <string.h>
#include <systemd/sd-daemon.h>

#include "binding/sites.h"
#include "journal.h"
#include "log.h"

void manager_notify_status(Manager *m) {
        m->status_has_changed = true;
}

void manager_send_status(Manager *m) {
        const BindingTable *bindings = &m->config->bindings;

        if (!m->status_has_changed)
                return;
        m->status_has_changed = false;
        (void) sd_notifyf(false, "STATUS=%zu bindings, %zu active, %zu failed", bindings->n,
                          binding_table_count(bindings, BINDING_ACTIVE),
                          binding_table_count(bindings, BINDING_FAILED));
}

/* Before it is in the table, nobody can know it. */
void manager_tell_changed(Manager *m, const Binding *binding) {
        if (binding_table_get(&m->config->bindings, binding->name) == binding)
                manager_tell(m, binding_changed, binding);
}

static void forget_failures(Binding *binding) {
        char **failures = binding->measurement.failures;

        for (size_t i = 0; i < ELEMENTSOF(binding->measurement.failures); i++) {
                free(failures[i]);
                failures[i] = NULL;
        }
}

/*
 * A reason may speak of the program that runs: at each restart of its unit the binding would fail
 * for all of them again, and a unit can be restarted many times a second.
 */
static void tell_failure(Binding *binding) {
        char **failures = binding->measurement.failures;
        const char *reason = binding->measurement.reason;

        for (size_t i = 0; i < ELEMENTSOF(binding->measurement.failures); i++)
                if (failures[i] && streq_empty(failures[i], reason))
                        return;
        (void) journal_binding_failure(binding);
        free(failures[ELEMENTSOF(binding->measurement.failures) - 1]);
        memmove(failures + 1, failures, sizeof(binding->measurement.failures) - sizeof(*failures));
        failures[0] = reason ? strdup(reason) : NULL;
}

void manager_set_state(Manager *m, Binding *binding, BindingState state, const char *reason) {
        bool changed = binding->measurement.state != state ||
                       !streq_empty(binding->measurement.reason, reason);
        BindingState before = binding->measurement.state;

        if (binding_set_state(binding, state, reason) < 0)
                log_oom();
        if (!changed)
                return;

        if (state == BINDING_FAILED)
                tell_failure(binding);
        else if (before == BINDING_FAILED && state == BINDING_ACTIVE)
                (void) journal_binding_recovery(binding);
        if (state == BINDING_ACTIVE)
                forget_failures(binding);
        manager_tell_changed(m, binding);
        manager_notify_status(m);
}

void manager_forget_kept(Binding *binding) {
        free(binding->look.kept);
        binding->look.kept = NULL;
}

void manager_set_state_active(Manager *m, Binding *binding) {
        const char *reason = binding->look.remark ?: binding->look.kept;
        _cleanup_free_ char *note = NULL;

        if (!reason && binding->former)
                reason = binding->former->measurement.reason;
        if (!reason && binding_describe_semaphores(binding, &note) < 0)
                log_oom();
        manager_set_state(m, binding, BINDING_ACTIVE, reason ?: note);
}
