/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Nobody is woken for this as long as no file was replaced by another build: then twice a minute,
 * until each binding of such a file has been judged. That takes a thousand windows of both builds;
 * where the first has fewer, there is nothing to wait for.
 */

#include "manager/builds.h"

#include "binding/build.h"
#include "journal.h"
#include "log.h"
#include "manager/past.h"

#define LOOK_USEC  (30 * UINT64_C(1000000))
#define LOOSE_USEC (5 * UINT64_C(1000000))

/* Is there something to be compared, now or later? */
static bool is_open(const Binding *binding) {
        const PastBuild *before;
        Histogram none = {};

        before = binding->measurement.backend ? binding_add_build(binding, &none) : NULL;
        return before && histogram_count(before->lengths, 0) >= BUILD_WINDOWS_MIN &&
               !streq_empty(binding->measurement.past.told_of, binding->resolved.build_id);
}

const PastBuild *manager_get_builds(const Binding *binding, Histogram *ret) {
        Backend *backend = binding->measurement.backend;

        *ret = (Histogram) {};
        if (backend && backend->ops->histogram &&
            backend->ops->histogram(backend, binding->measurement.index, ret) < 0)
                return NULL;
        return binding_add_build(binding, ret);
}

static void compare(Binding *binding) {
        uint64_t before_ns, now_ns;
        const PastBuild *before;
        Histogram lengths;

        before = manager_get_builds(binding, &lengths);
        if (!before || !lengths_are_worse(before->lengths, &lengths, &before_ns, &now_ns))
                return;
        if (free_and_strdup(&binding->measurement.past.told_of, binding->resolved.build_id) < 0)
                log_oom();
        manager_note_past(binding);
        (void) journal_worse_build(binding, &(BuildComparison) {
                                                    .before_id = before->id,
                                                    .before_ns = before_ns,
                                                    .now_ns = now_ns,
                                                    .n_windows = histogram_count(&lengths, 0),
                                            });
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata);

static void look_later(Manager *m) {
        int r;

        if (m->builds_timer || !m->event)
                return;
        r = sd_event_add_time_relative(m->event, &m->builds_timer, CLOCK_MONOTONIC, LOOK_USEC,
                                       LOOSE_USEC, on_look, m);
        if (r < 0)
                log_error_errno(r, "Failed to compare builds later, ignoring: %m");
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata) {
        bool any = false;
        Manager *m = userdata;

        manager_stop_comparing(m);
        for (size_t i = 0; i < m->config->bindings.n; i++) {
                Binding *binding = m->config->bindings.items[i];

                if (is_open(binding))
                        compare(binding);
                any |= is_open(binding);
        }
        if (any)
                look_later(m);
        return 0;
}

void manager_stop_comparing(Manager *m) {
        m->builds_timer = sd_event_source_disable_unref(m->builds_timer);
}

void manager_compare_build(Manager *m, Binding *binding) {
        if (is_open(binding))
                look_later(m);
}
