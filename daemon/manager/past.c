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
        if (m->backend->ops->add_past(m->backend, m->index, &noted) < 0)
                log_oom();
        if (noted.statistics.counters.starts <= m->past.statistics.counters.starts)
                return;
        past_done(&m->past);
        m->past = noted;
        noted = (Past){};
}

void manager_add_past(Binding *binding, const char *build_id, const Statistics *final,
                      const Histogram *lengths) {
        statistics_add(&binding->measurement.past.statistics, final);
        if (past_add_lengths(&binding->measurement.past, build_id, lengths) < 0)
                log_oom();
}

void manager_clear_past(Binding *binding) {
        past_done(&binding->measurement.past);
        manager_note_past(binding);
}
