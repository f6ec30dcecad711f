/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * When the processes of a binding's unit are looked at: a few times after the unit has started, and
 * then again and again. What is looked for is in manager/looks.c.
 */

#include "manager/expect.h"

#include "base/unit-name.h"
#include "log.h"
#include "manager/state.h"

/* After the start of the unit, or after the look before; the last one again and again. */
static const uint64_t delays_usec[] = { 300000, 700000, 2000000, 7000000, 20000000, 60000000 };

static int on_time(sd_event_source *source, uint64_t usec, void *userdata);

void manager_look_in(Manager *m, Binding *binding, uint64_t delay_usec) {
        uint64_t now;

        if (!m->event || sd_event_now(m->event, CLOCK_MONOTONIC, &now) < 0)
                return;
        binding->look.due_usec = now + delay_usec;
        if (!m->looks) {
                if (sd_event_add_time(m->event, &m->looks, CLOCK_MONOTONIC, binding->look.due_usec,
                                      0, on_time, m) < 0)
                        log_oom();
                return;
        }
        if (sd_event_source_get_time(m->looks, &now) >= 0 &&
            (now > binding->look.due_usec ||
             sd_event_source_get_enabled(m->looks, NULL) <= SD_EVENT_OFF))
                (void) sd_event_source_set_time(m->looks, binding->look.due_usec);
        (void) sd_event_source_set_enabled(m->looks, SD_EVENT_ONESHOT);
}

void manager_look_later(Manager *m, Binding *binding) {
        unsigned last = ELEMENTSOF(delays_usec) - 1;
        unsigned step = binding->look.step < last ? binding->look.step : last;

        manager_look_in(m, binding, delays_usec[step]);
}

char *manager_remark_of_backend(const Binding *binding) {
        const BindingMeasurement *measurement = &binding->measurement;
        const BackendOps *ops = measurement->backend->ops;

        return ops->remark ? ops->remark(measurement->backend, measurement->index) : NULL;
}

BindingState manager_state_in_backend(const Binding *binding) {
        Backend *backend = binding->measurement.backend;

        return backend && backend->ops->state
                       ? backend->ops->state(backend, binding->measurement.index)
                       : BINDING_ACTIVE;
}

void manager_set_remark(Manager *m, Binding *binding, const char *remark) {
        if (free_and_strdup(&binding->look.remark, remark) < 0)
                log_oom();
        if (binding->measurement.state == BINDING_ACTIVE)
                manager_set_state_active(m, binding);
        if (!remark || binding->look.was_remarked)
                return;
        log_warning("'%s' measures nothing. %s.", binding->name, remark);
        binding->look.was_remarked = true;
}

void manager_expect_unit(Manager *m, Binding *binding) {
        if (!binding->unit || unit_name_is_template(binding->unit) ||
            (binding->look.pid == binding->view.main_pid &&
             binding->look.cgroup_id == binding->cgroup.id))
                return;
        binding->look.pid = binding->view.main_pid;
        binding->look.cgroup_id = binding->cgroup.id;
        binding->look.step = 0;
        binding->look.old = (OldProgram) {};
        manager_set_remark(m, binding, NULL);
        manager_look_later(m, binding);
}

/* What was looked at before had other probes, or none. */
void manager_look_anew(Binding *binding) {
        if (binding->look.due_usec > 0 || binding->look.question > 0)
                return;
        binding->look.pid = 0;
        binding->look.cgroup_id = 0;
}

void manager_forget_unit(Binding *binding) {
        binding->look.pid = 0;
        binding->look.cgroup_id = 0;
        binding->look.due_usec = 0;
        binding->look.question = 0;
        binding->look.old = (OldProgram) {};
        free(binding->look.remark);
        binding->look.remark = NULL;
        manager_forget_kept(binding);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;
        uint64_t next = m->follow->look_at_units(m, usec);

        if (next == UINT64_MAX)
                return 0;
        (void) sd_event_source_set_time(source, next);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}
