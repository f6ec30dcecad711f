/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager/past.h"

#include "binding/build.h"
#include "log.h"

void manager_note_past(const Binding *binding) {
        const BindingMeasurement *m = &binding->measurement;

        if (m->backend && m->backend->ops->keep_past)
                m->backend->ops->keep_past(m->backend, m->index, &m->past, m->past_lengths);
}

void manager_take_over_past(Binding *binding) {
        BindingMeasurement *m = &binding->measurement;
        Histogram lengths = {};

        if (!m->backend->ops->add_past)
                return;
        m->backend->ops->add_past(m->backend, m->index, &m->past, &lengths);
        if (binding_keep_lengths(binding, &lengths) < 0)
                log_oom();
        manager_note_past(binding);
}

void manager_read_past(Binding *binding) {
        BindingMeasurement *m = &binding->measurement;
        Statistics noted = {};
        Histogram lengths = {};

        if (!m->backend || !m->backend->ops->add_past)
                return;
        m->backend->ops->add_past(m->backend, m->index, &noted, &lengths);
        if (noted.counters.starts <= m->past.counters.starts)
                return;
        m->past = noted;
        m->past_lengths = histogram_free(m->past_lengths);
        if (binding_keep_lengths(binding, &lengths) < 0)
                log_oom();
}

void manager_add_past(Binding *binding, const char *build_id, const Statistics *final,
                      const Histogram *lengths) {
        statistics_add(&binding->measurement.past, final);
        if (binding_keep_lengths(binding, lengths) < 0 ||
            binding_note_build(binding, build_id, lengths) < 0)
                log_oom();
}

void manager_clear_past(Binding *binding) {
        binding->measurement.past = (Statistics){};
        binding->measurement.past_lengths = histogram_free(binding->measurement.past_lengths);
        binding_forget_builds(binding);
        manager_note_past(binding);
}
