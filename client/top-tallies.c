/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What all bindings have counted, read from D-Bus. Unlike everything else, this does not go by way
 * of JSON (bus-json.c): it is done every second for what may be a thousand bindings, most of whose
 * properties are not needed.
 */

#include "top-tallies.h"

#include <fnmatch.h>
#include <stddef.h>

#include "base/clock.h"
#include "tlob-bus.h"

typedef struct Property {
        const char *name;
        size_t offset;
} Property;

static const Property strings[] = {
        { "Name", offsetof(Tally, name) },
        { "Unit", offsetof(Tally, unit) },
        { "State", offsetof(Tally, state) },
};

static const Property numbers[] = {
        { "BudgetNSec", offsetof(Tally, budget_ns) },
        { "Windows", offsetof(Tally, windows) },
        { "Violations", offsetof(Tally, violations) },
        { "RunningNSec", offsetof(Tally, spent_ns[TLOB_RUNNING]) },
        { "WaitingNSec", offsetof(Tally, spent_ns[TLOB_WAITING]) },
        { "SleepingNSec", offsetof(Tally, spent_ns[TLOB_SLEEPING]) },
        { "MaxNSec", offsetof(Tally, max_ns) },
        { "ProbesNSec", offsetof(Tally, probes_ns) },
};

static void tally_init(Tally *tally) {
        *tally = (Tally) { .open = UINT64_MAX };
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                *(uint64_t *) ((char *) tally + numbers[i].offset) = UINT64_MAX;
}

static int read_lengths(sd_bus_message *m, Tally *tally) {
        size_t room = 0;
        uint64_t upper_ns, count;
        int r;

        r = sd_bus_message_enter_container(m, 'v', "a(tt)");
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "(tt)");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, "(tt)", &upper_ns, &count)) > 0) {
                if (tally->n_lengths == room) {
                        HistogramBucket *more;

                        room = 2 * room + 32;
                        more = reallocarray(tally->lengths, room, sizeof(*more));
                        if (!more)
                                return -ENOMEM;
                        tally->lengths = more;
                }
                tally->lengths[tally->n_lengths++] = (HistogramBucket) { upper_ns, count };
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_open(sd_bus_message *m, Tally *tally) {
        const char *name;
        uint64_t count;
        int r;

        r = sd_bus_message_enter_container(m, 'v', "a{st}");
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "{st}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, "{st}", &name, &count)) > 0)
                if (streq(name, "open"))
                        tally->open = count;
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* The value of a property, which comes next. */
static int read_value(sd_bus_message *m, const char *name, Tally *tally) {
        const char *text;
        int r;

        for (size_t i = 0; i < ELEMENTSOF(strings); i++)
                if (streq(strings[i].name, name)) {
                        r = sd_bus_message_read(m, "v", "s", &text);
                        return r < 0 ? r
                                     : free_and_strdup(
                                               (char **) ((char *) tally + strings[i].offset),
                                               text);
                }
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                if (streq(numbers[i].name, name))
                        return sd_bus_message_read(
                                m, "v", "t", (uint64_t *) ((char *) tally + numbers[i].offset));
        if (streq(name, "Histogram") && !tally->lengths)
                return read_lengths(m, tally);
        if (streq(name, "Counters"))
                return read_open(m, tally);
        return sd_bus_message_skip(m, "v");
}

static int read_properties(sd_bus_message *m, Tally *tally) {
        const char *name;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = sd_bus_message_read(m, "s", &name);
                if (r >= 0)
                        r = read_value(m, name, tally);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* The interfaces of an object. One that is no binding has no name then. */
static int read_object(sd_bus_message *m, Tally *tally) {
        const char *interface;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sa{sv}}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sa{sv}")) > 0) {
                r = sd_bus_message_read(m, "s", &interface);
                if (r >= 0)
                        r = streq(interface, TLOB_BUS_BINDING_INTERFACE)
                                    ? read_properties(m, tally)
                                    : sd_bus_message_skip(m, "a{sv}");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

bool top_pattern_matches(const char *pattern, const char *binding, const char *unit) {
        if (!pattern)
                return true;
        if (!strpbrk(pattern, "*?["))
                return strstr(binding, pattern) || strstr(unit, pattern);
        return fnmatch(pattern, binding, FNM_NOESCAPE) == 0 ||
               fnmatch(pattern, unit, FNM_NOESCAPE) == 0;
}

static int append_tally(Tallies *tallies, Tally *tally) {
        Tally *more = reallocarray(tallies->tallies, tallies->n + 1, sizeof(*more));

        if (!more)
                return -ENOMEM;
        tallies->tallies = more;
        tallies->tallies[tallies->n++] = *tally;
        *tally = (Tally) {};
        return 0;
}

static int read_next(sd_bus_message *m, const Filter *filter, const char *pattern,
                     Tallies *tallies) {
        _cleanup_(tally_done) Tally tally;
        int r;

        tally_init(&tally);
        r = sd_bus_message_skip(m, "o");
        if (r >= 0)
                r = read_object(m, &tally);
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r < 0 || !tally.name || !tally.unit || !tally.state)
                return r;
        if (!filter_matches(filter, tally.name, tally.unit) ||
            !top_pattern_matches(pattern, tally.name, tally.unit))
                return 0;
        return append_tally(tallies, &tally);
}

static int compare_tallies(const void *a, const void *b) {
        return strcmp(((const Tally *) a)->name, ((const Tally *) b)->name);
}

int top_read_tallies(sd_bus_message *reply, const Filter *filter, const char *pattern,
                     Tallies *ret) {
        _cleanup_(tallies_done) Tallies tallies = { .time_ns = now_ns() };
        int r;

        r = sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}");
        while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}")) > 0)
                r = read_next(reply, filter, pattern, &tallies);
        if (r < 0)
                return r;
        if (tallies.n > 0)
                qsort(tallies.tallies, tallies.n, sizeof(*tallies.tallies), compare_tallies);
        *ret = tallies;
        tallies = (Tallies) {};
        return 0;
}
