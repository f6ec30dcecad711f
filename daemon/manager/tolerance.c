/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Whether the tolerance of a binding is broken can only become true with a violation, and is looked
 * at then, once a second at most. What it is compared with, and that it is kept again, takes a
 * sample of the counters now and then: sixty in the time that it is for. Nobody is woken for
 * bindings without one.
 *
 * Counters go on when tlobd is started again; the samples do not, and the time begins anew.
 */

#include "manager/tolerance.h"

#include "base/clock.h"
#include "base/duration.h"
#include "journal.h"
#include "log.h"

#define PAUSE_MIN_NS NSEC_PER_SEC
#define LOOSE_PART   10 /* of the time until the next sample: others' timers may share it */

static int on_time(sd_event_source *source, uint64_t usec, void *userdata);

static void tell(Manager *m, const Binding *binding) {
        (void) journal_tolerance(binding);
        manager_tell(m, tolerance_changed, binding);
}

static uint64_t pause_of(const Binding *binding) {
        uint64_t step = tolerance_step(binding->tolerance_window_ns);

        return step > PAUSE_MIN_NS ? step : PAUSE_MIN_NS;
}

/* A back end that does not count windows can judge nothing. */
static void judge(Manager *m, Binding *binding, uint64_t now) {
        BindingTolerance *state = &binding->tolerance_state;
        Statistics statistics;

        state->judged_ns = now;
        state->due_ns = now + pause_of(binding);
        state->is_known = manager_get_statistics(m, binding, &statistics) >= 0 &&
                          statistics.counters.starts != STATISTIC_UNKNOWN &&
                          statistics.counters.violations != STATISTIC_UNKNOWN;
        if (state->is_known &&
            tolerance_update(state->track, &binding->tolerance, binding->tolerance_window_ns,
                             &(ToleranceSample){
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
                free(state->track);
                *state = (BindingTolerance){};
                return;
        }
        if (!state->track)
                state->track = calloc(1, sizeof(*state->track));
        if (!state->track) {
                log_oom();
                return;
        }
        judge(m, binding, now_ns());
        wait_for(m, state->due_ns);
}

void manager_use_tolerance(Manager *m, Binding *binding) {
        BindingTolerance *state = &binding->tolerance_state;
        uint64_t now;

        if (!state->track)
                return;
        now = now_ns();
        if (now - state->judged_ns >= PAUSE_MIN_NS)
                judge(m, binding, now);
        else if (state->due_ns > state->judged_ns + PAUSE_MIN_NS)
                state->due_ns = state->judged_ns + PAUSE_MIN_NS;
        wait_for(m, state->due_ns);
}

void manager_stop_tolerances(Manager *m) {
        m->tolerance_timer = sd_event_source_disable_unref(m->tolerance_timer);
}
