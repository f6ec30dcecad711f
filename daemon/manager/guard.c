/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What probes may cost, and the timers of budgets that run out all the time. Nobody looks as long
 * as both are rare: the back end raises an alarm when they are not. Then their cost is looked at
 * for half a second, and what has been dearer than its limit goes; what is twice as dear goes after
 * the first tenth. So a program that runs measured code in a burst, as many do when they start, is
 * let alone, and a machine that is brought to its knees is not.
 *
 * A binding that was too dear stays without probes until somebody asks for them: whatever its unit
 * does meanwhile, and whatever systemd reloads.
 */

#include "manager/guard.h"

#include "base/clock.h"
#include "base/percent.h"
#include "base/sentence.h"
#include "log.h"
#include "manager/backend-facts.h"
#include "manager/settle.h"

#define FIRST_USEC  100000
#define LAST_USEC   500000
#define FIRST_TIMES 2 /* the limit */

#define WHAT_TO_DO                                                                                 \
        "measure code that is run less often, or with a longer budget, or raise the limit, and "   \
        "run 'tlobctl reload'"

/* In its own file: its former has another. */
static uint64_t cost_of(const Binding *binding) {
        Backend *backend = binding->measurement.backend;

        return backend && backend->ops->cost
                       ? backend->ops->cost(backend, binding->measurement.index)
                       : 0;
}

static void note_cost(Binding *binding) {
        binding->measurement.cost_ns = cost_of(binding);
        if (binding->former)
                note_cost(binding->former);
}

/* What was set anew meanwhile began at zero. */
static uint64_t grown(uint64_t from_ns, uint64_t to_ns) {
        return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* Since that was noted, or its probes were set. */
static uint64_t cost_since(const Binding *binding) {
        uint64_t former_ns = binding->former ? cost_since(binding->former) : 0;

        return grown(binding->measurement.cost_ns, cost_of(binding)) + former_ns;
}

/* All that have probes: those of users are the first to go. NULL: there are no more. */
static Binding *binding_at(const Manager *m, size_t i) {
        const BindingTable *bindings = &m->config->bindings;

        if (i < m->n_lent)
                return m->lent[i];
        i -= m->n_lent;
        return i < bindings->n ? bindings->items[i] : NULL;
}

/* why: owned by this; NULL for want of memory. */
static void give_up(Manager *m, Binding *binding, char *why) {
        if (!binding->lent.user) {
                manager_give_up(m, binding, why);
                return;
        }
        manager_evict_lent(m, binding, why ?: "Its probes took too much of a CPU");
        free(why);
}

/* In percent of a CPU. */
static unsigned share(uint64_t cost_ns, uint64_t elapsed_ns) {
        return (unsigned) (cost_ns * 100 / elapsed_ns);
}

static bool exceeds(unsigned share, unsigned limit, unsigned times) {
        return limit != PERCENT_NONE && share > limit * times;
}

/* What system calls and events are measured by, each one of the machine pays for. */
static char *describe_price(const Binding *binding, unsigned n) {
        if (binding->lent.user)
                return sentence_make("Its probes and timers took %u%% of a CPU, more than the %u%% "
                                     "that a binding of a user may take: name a function that is "
                                     "called less often, and run 'tlobctl --user reload'",
                                     n, binding->cpu_limit);
        if (binding_has_file(binding))
                return sentence_make("Its probes and timers took %u%% of a CPU, more than "
                                     "CPULimit=%u%%: " WHAT_TO_DO,
                                     n, binding->cpu_limit);
        if (binding_has_events(binding) && !binding_has_call_events(binding))
                return sentence_make("It took %u%% of a CPU, more than CPULimit=%u%%: by each hit "
                                     "of its events on the whole machine, and by the timers of its "
                                     "budget. Raise the limit, and run 'tlobctl reload'",
                                     n, binding->cpu_limit);
        return sentence_make("It took %u%% of a CPU, more than CPULimit=%u%%: by each system call "
                             "of the whole machine, and by the timers of its budget. Raise the "
                             "limit, and run 'tlobctl reload'",
                             n, binding->cpu_limit);
}

static void judge_each(Manager *m, uint64_t elapsed_ns, unsigned times) {
        Binding *binding;

        for (size_t i = 0; (binding = binding_at(m, i));) {
                unsigned n = share(cost_since(binding), elapsed_ns);

                if (exceeds(n, binding->cpu_limit, times))
                        give_up(m, binding, describe_price(binding, n));
                i += binding_at(m, i) == binding;
        }
}

/* Was it added for the time until the next boot? */
static bool is_passing(const Manager *m, const Binding *binding) {
        const char *directory = m->directories[1];

        return binding->lent.user ||
               strncmp(binding->source.place, directory, strlen(directory)) == 0;
}

/* Of those that nobody has configured, if any of them takes something. */
static Binding *find_dearest(const Manager *m, uint64_t elapsed_ns, unsigned *ret_share) {
        Binding *dearest = NULL, *binding;

        *ret_share = 0;
        for (size_t i = 0; (binding = binding_at(m, i)); i++) {
                unsigned n = share(cost_since(binding), elapsed_ns);
                bool goes_first = dearest && is_passing(m, binding) && !is_passing(m, dearest);
                bool goes_later = dearest && !is_passing(m, binding) && is_passing(m, dearest);

                if (n > 0 && !goes_later && (goes_first || n > *ret_share)) {
                        *ret_share = n;
                        dearest = binding;
                }
        }
        return dearest;
}

/* One binding after the other, until the others are within the limit. */
static void judge_all(Manager *m, uint64_t elapsed_ns, unsigned times) {
        unsigned limit = m->config->cpu_limit, all, one;
        Binding *dearest;

        all = share(grown(m->guard.cost_ns, backends_get_cost(m->backends)), elapsed_ns);
        while (exceeds(all, limit, times) && (dearest = find_dearest(m, elapsed_ns, &one))) {
                give_up(m, dearest,
                        sentence_make(
                                "All probes and timers took %u%% of a CPU, more than CPULimit=%u%% "
                                "of tlobd.conf, and its own %u%% of it: " WHAT_TO_DO,
                                all, limit, one));
                all -= one < all ? one : all;
        }
}

void manager_stop_guard(Manager *m) {
        m->guard.timer = sd_event_source_disable_unref(m->guard.timer);
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;
        uint64_t elapsed_ns = now_ns() - m->guard.began_ns;
        bool is_last = elapsed_ns / 1000 >= LAST_USEC;
        unsigned times = is_last ? 1 : FIRST_TIMES;

        judge_each(m, elapsed_ns, times);
        judge_all(m, elapsed_ns, times);
        if (!is_last && sd_event_source_set_time_relative(source, LAST_USEC - FIRST_USEC) >= 0 &&
            sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) >= 0)
                return 0;
        manager_stop_guard(m);
        manager_guard_costs(m);
        return 0;
}

static int begin(Manager *m) {
        Binding *binding;

        m->guard.began_ns = now_ns();
        m->guard.cost_ns = backends_get_cost(m->backends);
        for (size_t i = 0; (binding = binding_at(m, i)); i++)
                note_cost(binding);
        return sd_event_add_time_relative(m->event, &m->guard.timer, CLOCK_MONOTONIC, FIRST_USEC,
                                          1000, on_look, m);
}

void manager_guard_costs(Manager *m) {
        int r;

        if (m->guard.timer || !m->config || !backends_take_alarm(m->backends))
                return;
        r = begin(m);
        if (r < 0)
                log_error_errno(r, "Failed to look at what probes cost, ignoring: %m");
}
