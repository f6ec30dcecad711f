/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The states of bindings, and who is told when one changes: journal, observer, and the line of
 * "systemctl status". Which state a binding takes on is decided elsewhere.
 */

#include "manager/state.h"

#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/unit-name.h"
#include "binding/sites.h"
#include "journal.h"
#include "log.h"

#define FAILURE_INTERVAL_NS (UINT64_C(600) * NSEC_PER_SEC)

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

/* "foo@x.service/b: ..." -> "/b: ..." */
static char *reason_of_all(const Binding *binding) {
        size_t n = strlen(binding->unit);
        char *text, *at;

        text = strdup(binding->measurement.reason ?: "");
        if (!text)
                return NULL;
        while ((at = strstr(text, binding->unit)) != NULL)
                memmove(at, at + n, strlen(at + n) + 1);
        return text;
}

static void forget_failure(TemplateFailure *failure) {
        free(failure->reason);
        *failure = (TemplateFailure) {};
}

/*
 * One mistake in a template is that of all its instances, and a socket can make thousands of these.
 * Returns whether it was told of another one a moment ago.
 */
static bool is_told_of_another(Manager *m, const Binding *binding) {
        bool is_instance = binding->unit && strchr(binding->unit, '@') &&
                           !unit_name_is_template(binding->unit);
        _cleanup_free_ char *reason = is_instance ? reason_of_all(binding) : NULL;
        TemplateFailure *failure;

        if (!reason)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(m->failures); i++)
                if (streq_empty(m->failures[i].reason, reason) &&
                    now_ns() - m->failures[i].told_ns < FAILURE_INTERVAL_NS)
                        return true;
        failure = &m->failures[m->n_failures++ % ELEMENTSOF(m->failures)];
        forget_failure(failure);
        *failure = (TemplateFailure) { .reason = TAKE_PTR(reason), .told_ns = now_ns() };
        return false;
}

void manager_forget_failures(Manager *m) {
        for (size_t i = 0; i < ELEMENTSOF(m->failures); i++)
                forget_failure(&m->failures[i]);
}

/*
 * A reason may speak of the program that runs: at each restart of its unit the binding would fail
 * for all of them again, and a unit can be restarted many times a second.
 */
static void tell_failure(Manager *m, Binding *binding) {
        char **failures = binding->measurement.failures;
        const char *reason = binding->measurement.reason;

        for (size_t i = 0; i < ELEMENTSOF(binding->measurement.failures); i++)
                if (failures[i] && streq_empty(failures[i], reason))
                        return;
        if (!is_told_of_another(m, binding)) {
                (void) journal_binding_failure(binding);
                binding->measurement.failure_is_told = true;
        }
        free(failures[ELEMENTSOF(binding->measurement.failures) - 1]);
        memmove(failures + 1, failures, sizeof(binding->measurement.failures) - sizeof(*failures));
        failures[0] = reason ? strdup(reason) : NULL;
}

/* Of what nobody has heard of, nobody needs to hear that it has passed. */
static void tell_recovery(Manager *m, Binding *binding) {
        BindingMeasurement *measurement = &binding->measurement;

        if (measurement->failure_is_told) {
                (void) journal_binding_recovery(binding);
                manager_forget_failures(m);
        }
        measurement->failure_is_told = false;
        binding_forget_failures(binding);
}

void manager_set_state(Manager *m, Binding *binding, BindingState state, const char *reason) {
        bool changed = binding->measurement.state != state ||
                       !streq_empty(binding->measurement.reason, reason);
        if (binding_set_state(binding, state, reason) < 0)
                log_oom();
        if (!changed)
                return;

        if (state == BINDING_FAILED)
                tell_failure(m, binding);
        else if (state == BINDING_ACTIVE)
                tell_recovery(m, binding);
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
