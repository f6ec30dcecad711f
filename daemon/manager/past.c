/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager/past.h"

#include "log.h"

void manager_note_past(const Binding *binding) {
        const BindingMeasurement *m = &binding->measurement;

        if (m->backend && m->backend->ops->keep_past)
                m->backend->ops->keep_past(m->backend, m->index, &m->past);
}

void manager_take_over_past(Binding *binding) {
        BindingMeasurement *m = &binding->measurement;

        if (!m->backend->ops->add_past)
                return;
        if (m->backend->ops->add_past(m->backend, m->index, &m->past) < 0)
                log_oom();
        manager_note_past(binding);
}

void manager_read_past(Binding *binding) {
        _cleanup_(past_done) Past noted = {};
        BindingMeasurement *m = &binding->measurement;

        if (!m->backend || !m->backend->ops->add_past)
                return;
        if (m->backend->ops->add_past(m->backend, m->index, &noted) < 0) {
                log_oom();
                return;
        }
        if (noted.statistics.counters.starts <= m->past.statistics.counters.starts)
                return;
        past_done(&m->past);
        m->past = noted;
        noted = (Past) {};
}

void manager_add_past(Binding *binding, const Statistics *final, const Histogram *lengths) {
        Binding *heir = binding->latter ?: binding;
        Past *past = &heir->measurement.past;
        const char *build_id = binding->resolved.build_id;

        statistics_add(&past->statistics, final);
        if ((binding->latter ? past_add_former(past, build_id, lengths)
                             : past_add_lengths(past, build_id, lengths)) < 0)
                log_oom();
}

void manager_clear_past(Binding *binding) {
        past_done(&binding->measurement.past);
        manager_note_past(binding);
}
