/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What was counted of a binding, as properties of its object. */

#include "bus/internal.h"

/* All properties that one call asks for are of the same reading. */
static int read_books(Bus *bus, Binding *binding, const Statistics **ret) {
        int r;

        if (bus->books_of != binding) {
                bus->books_of = NULL;
                r = manager_get_statistics(bus->manager, binding, &bus->books);
                if (r < 0)
                        return r;
                bus->books_of = binding;
        }
        *ret = &bus->books;
        return 0;
}

/* The counters that are properties of their own. */
static uint64_t counter(const Statistics *s, const char *property) {
        const struct {
                const char *property;
                uint64_t value;
        } counters[] = {
                { "Windows", s->counters.starts },
                { "Violations", s->counters.violations },
                { "RunningNSec", s->counters.spent_ns[TLOB_RUNNING] },
                { "WaitingNSec", s->counters.spent_ns[TLOB_WAITING] },
                { "SleepingNSec", s->counters.spent_ns[TLOB_SLEEPING] },
                { "ElapsedNSec", s->counters.elapsed_ns },
                { "MaxNSec", s->max_ns },
                { "ProbesNSec", s->cost_ns },
        };

        for (size_t i = 0; i < ELEMENTSOF(counters); i++)
                if (streq(counters[i].property, property))
                        return counters[i].value;
        return STATISTIC_UNKNOWN;
}

static int append_counters(sd_bus_message *m, const Binding *binding, const Statistics *s) {
        const Counters *c = &s->counters;
        const struct {
                const char *name;
                uint64_t value;
        } counters[] = {
                { "starts", c->starts },
                { "in-budget", c->in_budget },
                { "violated", c->violated },
                { "open", s->open },
                { "exit", c->ended[TLOB_END_EXIT] },
                { "exec", c->ended[TLOB_END_EXEC] },
                { "abandoned", c->ended[TLOB_END_ABANDONED] },
                { "switched", c->ended[TLOB_END_SWITCHED] },
                { "removed", c->ended[TLOB_END_REMOVED] },
                { "over-limit", c->over_limit },
                { "nested", c->nested },
                { "unmatched", c->unmatched },
                { "lost", c->lost },
                { "suppressed", binding->limit.n_suppressed },
                { "outside", c->outside },
                { "processes", c->processes },
                { "processes-missed", c->processes_missed },
                { "processes-late-ns", c->late_ns },
                { "processes-late-max-ns", s->late_max_ns },
        };
        int r;

        r = sd_bus_message_open_container(m, 'a', "{st}");
        for (size_t i = 0; i < ELEMENTSOF(counters) && r >= 0; i++)
                r = sd_bus_message_append(m, "{st}", counters[i].name, counters[i].value);
        if (r >= 0 && binding_is_of_mark(binding))
                r = sd_bus_message_append(m, "{st}", "without-traps", c->untrapped);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_lengths(sd_bus_message *m, const Histogram *lengths) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "(tt)");
        for (size_t i = 0; i < TLOB_BUCKETS && r >= 0; i++)
                if (lengths->counts[i] > 0)
                        r = sd_bus_message_append(m, "(tt)", histogram_upper_bound(i),
                                                  lengths->counts[i]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_histogram(sd_bus_message *m, Manager *manager, Binding *binding) {
        Histogram histogram = {};
        int r;

        r = manager_get_histogram(manager, binding, &histogram);
        /* A back end that does not know them: no buckets, as the XML says. */
        if (r < 0 && r != -EOPNOTSUPP)
                return r;
        return append_lengths(m, &histogram);
}

static int append_build(sd_bus_message *m, const char *id, const Histogram *lengths) {
        int r;

        r = sd_bus_message_open_container(m, 'r', "sa(tt)");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", id);
        if (r >= 0)
                r = append_lengths(m, lengths);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_builds(sd_bus_message *m, const Binding *binding) {
        const PastBuild *before;
        Histogram lengths;
        int r;

        before = manager_get_builds(binding, &lengths);
        r = sd_bus_message_open_container(m, 'a', "(sa(tt))");
        if (r >= 0 && before)
                r = append_build(m, binding->resolved.build_id, &lengths);
        if (r >= 0 && before)
                r = append_build(m, before->id, before->lengths);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_get_binding_books(sd_bus *b, const char *path, const char *interface, const char *property,
                          sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Bus *bus = sd_bus_slot_get_userdata(sd_bus_get_current_slot(b));
        const Statistics *statistics;
        int r;

        if (streq(property, "Histogram"))
                return append_histogram(reply, bus->manager, userdata);
        if (streq(property, "Builds"))
                return append_builds(reply, userdata);
        r = read_books(bus, userdata, &statistics);
        if (r < 0)
                return r;
        if (streq(property, "Counters"))
                return append_counters(reply, userdata, statistics);
        return sd_bus_message_append(reply, "t", counter(statistics, property));
}
