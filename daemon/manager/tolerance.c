/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Whether the tolerance of a binding is broken can only become true with a violation, and is looked
 * at soon after one, once a second at most; and once a minute at least, as limits hold back reports
 * of violations. In the time that it is for, sixty samples of the counters are kept. Nobody is
 * woken for bindings without a tolerance.
 *
 * It is never judged while a report is handled: a binding that is being taken away has reports
 * left, and its counters in two places.
 *
 * Counters go on when tlobd is started again; the samples do not, and the time begins anew.
 */

#include "manager/tolerance.h"

#include "base/clock.h"
#include "base/duration.h"
#include "journal.h"
#include "log.h"
#include "manager/state.h"

#define PAUSE_MIN_NS NSEC_PER_SEC
#define PAUSE_MAX_NS NSEC_PER_MINUTE
#define LOOSE_PART   10 /* of the time until the next sample: others' timers may share it */

static int on_time(sd_event_source *source, uint64_t usec, void *userdata);

static void tell(Manager *m, const Binding *binding) {
        (void) journal_tolerance(binding);
        manager_tell(m, tolerance_changed, binding);
}

static uint64_t pause_of(const Binding *binding) {
        uint64_t step = tolerance_step(binding->tolerance_window_ns);

        return step < PAUSE_MIN_NS ? PAUSE_MIN_NS : step > PAUSE_MAX_NS ? PAUSE_MAX_NS : step;
}

static bool are_known(const Statistics *statistics) {
        return statistics->counters.starts != STATISTIC_UNKNOWN &&
               statistics->counters.violations != STATISTIC_UNKNOWN;
}

/* With what was counted before; but another back end may not have known that. */
static bool read_counters(Manager *m, Binding *binding, Statistics *ret) {
        Backend *backend = binding->measurement.backend;

        if (manager_get_statistics(m, binding, ret) < 0)
                return false;
        if (are_known(ret))
                return true;
        return backend && backend->ops->statistics(backend, binding->measurement.index, ret) >= 0 &&
               are_known(ret);
}

static void judge(Manager *m, Binding *binding, uint64_t now) {
        BindingTolerance *state = &binding->tolerance_state;
        bool was_known = state->is_known;
        Statistics statistics;

        state->judged_ns = now;
        state->due_ns = now + pause_of(binding);
        state->is_known = read_counters(m, binding, &statistics);
        if (state->is_known != was_known)
                manager_tell_changed(m, binding);
        if (state->is_known &&
            tolerance_update(state->track, &binding->tolerance, binding->tolerance_window_ns,
                             &(ToleranceSample) {
                                     .ns = now,
                                     .windows = statistics.counters.starts,
                                     .violations = statistics.counters.violations,
                             }))
                tell(m, binding);
}

/* A binding that is being added is in no table yet. */
static void wait_for(Manager *m, uint64_t due) {
        uint64_t now = now_ns(), in_usec;
        int r;

        if (!m->event || (m->tolerance_timer && m->tolerance_due_ns <= due))
                return;
        manager_stop_tolerances(m);
        in_usec = due > now ? (due - now) / NSEC_PER_USEC : 0;
        r = sd_event_add_time_relative(m->event, &m->tolerance_timer, CLOCK_MONOTONIC, in_usec,
                                       in_usec / LOOSE_PART + 1, on_time, m);
        if (r < 0)
                log_error_errno(r, "Failed to follow tolerances, ignoring: %m");
        m->tolerance_due_ns = due;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        uint64_t now = now_ns();
        Manager *m = userdata;

        manager_stop_tolerances(m);
        for (size_t i = 0; i < m->config->bindings.n; i++) {
                Binding *binding = m->config->bindings.items[i];

                if (!binding->tolerance_state.track)
                        continue;
                if (binding->tolerance_state.due_ns <= now)
                        judge(m, binding, now);
                wait_for(m, binding->tolerance_state.due_ns);
        }
        return 0;
}

void manager_follow_tolerance(Manager *m, Binding *binding) {
        BindingTolerance *state = &binding->tolerance_state;

        if (binding->tolerance.allowed == 0) {
                if (state->track && state->track->is_broken)
                        tell(m, binding);
                free(state->track);
                *state = (BindingTolerance) {};
                return;
        }
        if (!state->track)
                state->track = calloc(1, sizeof(*state->track));
        if (!state->track) {
                log_oom();
                return;
        }
        if (state->window_ns != binding->tolerance_window_ns)
                state->track->n = 0;
        state->window_ns = binding->tolerance_window_ns;
        judge(m, binding, now_ns());
        wait_for(m, state->due_ns);
}

void manager_restart_tolerance(Manager *m, Binding *binding) {
        if (!binding->tolerance_state.track)
                return;
        binding->tolerance_state.track->n = 0;
        judge(m, binding, now_ns());
}

void manager_use_tolerance(Manager *m, Binding *binding) {
        BindingTolerance *state = &binding->tolerance_state;
        uint64_t now, due;

        if (!state->track)
                return;
        now = now_ns();
        due = state->judged_ns + PAUSE_MIN_NS;
        if (due < now)
                due = now;
        if (due < state->due_ns)
                state->due_ns = due;
        wait_for(m, state->due_ns);
}

void manager_stop_tolerances(Manager *m) {
        m->tolerance_timer = sd_event_source_disable_unref(m->tolerance_timer);
}
