/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl metrics": what tlobd and the bindings have counted, for Prometheus and what reads its
 * format. Metrics are counters as they are, so that rates and percentiles are up to those who ask;
 * what is not known is left out rather than zero.
 *
 * With --output=, into a file that is there as a whole or not at all, as node_exporter wants it.
 * Without tlobd that file says only that there is none: old numbers would look like new ones.
 */

#include <err.h>

#include "filter.h"
#include "lengths.h"
#include "metrics/exposition.h"
#include "proxy.h"
#include "verbs.h"
#include "whole-file.h"

#define LABELS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NONE        ((const char *const[]){ NULL })

/* A metric of each binding, from one of its properties. */
typedef struct Metric {
        const char *name;
        const char *help;
        const char *property;
        const char *counter; /* of the property "Counters"; or NULL */
        MetricType type;
        bool is_duration;
} Metric;

static const Metric metrics[] = {
        { "tlob_budget_seconds", "What a window may take.", "BudgetNSec", NULL, METRIC_GAUGE,
          true },
        { "tlob_windows_total", "Windows that have begun.", "Windows", NULL, METRIC_COUNTER,
          false },
        { "tlob_violations_total",
          "Windows that have not kept their budget, reported or held back.", "Violations", NULL,
          METRIC_COUNTER, false },
        { "tlob_violations_suppressed_total", "Violations whose report was held back by a limit.",
          "Counters", "suppressed", METRIC_COUNTER, false },
        { "tlob_reports_lost_total", "Reports that were lost because a buffer was full.",
          "Counters", "lost", METRIC_COUNTER, false },
        { "tlob_windows_open", "Windows that have begun and not ended.", "Counters", "open",
          METRIC_GAUGE, false },
        { "tlob_probes_seconds_total",
          "CPU time that the probes have taken, estimated; bindings at one place share them.",
          "ProbesNSec", NULL, METRIC_COUNTER, true },
};

static const struct {
        const char *state, *property;
} states[] = {
        { "running", "RunningNSec" },
        { "waiting", "WaitingNSec" },
        { "sleeping", "SleepingNSec" },
};

/* Ways in which windows end, as in the property "Counters". */
static const char *const ends[] = {
        "in-budget", "violated", "exit", "exec", "abandoned", "switched", "removed", "over-limit",
};

static const char *const binding_states[] = { "active", "waiting", "failed", "disabled" };

static uint64_t counter_of(const json_object *binding, const char *name) {
        const json_object *counters = json_object_object_get(binding, "Counters");

        return counters ? json_number(counters, name) : UINT64_MAX;
}

/* UINT64_MAX is a value only of budgets. */
static bool is_known(const Metric *metric, uint64_t value) {
        return value != UINT64_MAX || metric->type == METRIC_GAUGE;
}

static void write_metric(FILE *f, const Metric *metric, const json_object *bindings) {
        metric_declare(f, metric->name, metric->type, metric->help);
        for (size_t i = 0; i < json_object_array_length(bindings); i++) {
                const json_object *binding = json_object_array_get_idx(bindings, i);
                MetricLabels labels = LABELS("binding", json_string(binding, "Name"), "unit",
                                             json_string(binding, "Unit"));
                uint64_t value = metric->counter ? counter_of(binding, metric->counter)
                                                 : json_number(binding, metric->property);

                if (metric->is_duration && is_known(metric, value))
                        metric_duration(f, metric->name, labels, value);
                else if (!metric->is_duration && value != UINT64_MAX)
                        metric_count(f, metric->name, labels, value);
        }
}

static void write_ends(FILE *f, const json_object *bindings) {
        const char *name = "tlob_windows_ended_total";

        metric_declare(f, name, METRIC_COUNTER, "Windows that have ended, by how.");
        for (size_t i = 0; i < json_object_array_length(bindings); i++) {
                const json_object *binding = json_object_array_get_idx(bindings, i);

                for (size_t k = 0; k < ELEMENTSOF(ends); k++) {
                        uint64_t value = counter_of(binding, ends[k]);

                        if (value != UINT64_MAX)
                                metric_count(f, name,
                                             LABELS("binding", json_string(binding, "Name"), "unit",
                                                    json_string(binding, "Unit"), "end", ends[k]),
                                             value);
                }
        }
}

static void write_times(FILE *f, const json_object *bindings) {
        const char *name = "tlob_window_state_seconds_total";

        metric_declare(f, name, METRIC_COUNTER,
                       "What the windows that have ended took, by the state of their task.");
        for (size_t i = 0; i < json_object_array_length(bindings); i++) {
                const json_object *binding = json_object_array_get_idx(bindings, i);

                for (size_t k = 0; k < ELEMENTSOF(states); k++) {
                        uint64_t ns = json_number(binding, states[k].property);

                        if (ns != UINT64_MAX)
                                metric_duration(f, name,
                                                LABELS("binding", json_string(binding, "Name"),
                                                       "unit", json_string(binding, "Unit"),
                                                       "state", states[k].state),
                                                ns);
                }
        }
}

/* A daemon that is older tells the parts only. UINT64_MAX: it is not known. */
static uint64_t sum_of(const json_object *binding) {
        uint64_t sum = json_number(binding, "ElapsedNSec");

        if (sum != UINT64_MAX)
                return sum;
        sum = 0;
        for (size_t k = 0; k < ELEMENTSOF(states); k++) {
                uint64_t ns = json_number(binding, states[k].property);

                if (ns == UINT64_MAX)
                        return UINT64_MAX;
                sum += ns;
        }
        return sum;
}

/* There are none of a back end that does not know them. */
static int write_lengths(FILE *f, const json_object *bindings) {
        const char *name = "tlob_window_seconds";

        metric_declare(f, name, METRIC_HISTOGRAM,
                       "How long windows took that have ended by themselves.");
        for (size_t i = 0; i < json_object_array_length(bindings); i++) {
                const json_object *binding = json_object_array_get_idx(bindings, i);
                const json_object *array = json_object_object_get(binding, "Histogram");
                _cleanup_free_ HistogramBucket *buckets = NULL;
                uint64_t sum_ns = sum_of(binding);
                size_t n = lengths_read(binding, &buckets);

                if (array && n < json_object_array_length(array))
                        return -ENOMEM;
                if (n > 0 || sum_ns != UINT64_MAX)
                        metric_histogram(f, name,
                                         LABELS("binding", json_string(binding, "Name"), "unit",
                                                json_string(binding, "Unit")),
                                         buckets, n, sum_ns);
        }
        return 0;
}

/* One for each state that there is, as OpenMetrics has it. */
static void write_binding_states(FILE *f, const json_object *bindings) {
        const char *name = "tlob_binding_state";

        metric_declare(f, name, METRIC_GAUGE,
                       "1 for the state that the binding is in, 0 for others.");
        for (size_t i = 0; i < json_object_array_length(bindings); i++) {
                const json_object *binding = json_object_array_get_idx(bindings, i);

                for (size_t k = 0; k < ELEMENTSOF(binding_states); k++)
                        metric_count(f, name,
                                     LABELS("binding", json_string(binding, "Name"), "unit",
                                            json_string(binding, "Unit"), "state",
                                            binding_states[k]),
                                     streq(json_string(binding, "State"), binding_states[k]));
        }
}

/* Of bindings that have one, and where it can be judged. */
static void write_tolerance(FILE *f, const json_object *bindings, const char *name,
                            const char *help,
                            void (*write)(FILE *, const char *, MetricLabels,
                                          const json_object *)) {
        metric_declare(f, name, METRIC_GAUGE, help);
        for (size_t i = 0; i < json_object_array_length(bindings); i++) {
                const json_object *binding = json_object_array_get_idx(bindings, i);
                const char *state = json_string(binding, "ToleranceState");

                if (*state != '\0' && !streq(state, "unknown"))
                        write(f, name,
                              LABELS("binding", json_string(binding, "Name"), "unit",
                                     json_string(binding, "Unit")),
                              binding);
        }
}

static void write_broken(FILE *f, const char *name, MetricLabels labels,
                         const json_object *binding) {
        metric_count(f, name, labels, streq(json_string(binding, "ToleranceState"), "broken"));
}

static void write_burn_rate(FILE *f, const char *name, MetricLabels labels,
                            const json_object *binding) {
        metric_ratio(f, name, labels,
                     json_object_get_double(json_object_object_get(binding, "BurnRate")));
}

static void write_up(FILE *f, bool is_up) {
        metric_declare(f, "tlob_up", METRIC_GAUGE,
                       "1 if tlobd has answered; 0: there is nothing else.");
        metric_count(f, "tlob_up", NONE, is_up);
}

/* What tlobd takes for itself, named as of other processes. */
static void write_usage(FILE *f, const json_object *manager) {
        const json_object *usage = json_object_object_get(manager, "Usage");

        if (!usage)
                return;
        metric_declare(f, "tlob_process_cpu_seconds_total", METRIC_COUNTER,
                       "CPU time of tlobd itself.");
        metric_duration(f, "tlob_process_cpu_seconds_total", NONE, json_number(usage, "cpu-ns"));
        metric_declare(f, "tlob_process_resident_memory_bytes", METRIC_GAUGE, "Memory of tlobd.");
        metric_count(f, "tlob_process_resident_memory_bytes", NONE,
                     json_number(usage, "memory-bytes"));
        metric_declare(f, "tlob_process_open_fds", METRIC_GAUGE, "File descriptors of tlobd.");
        metric_count(f, "tlob_process_open_fds", NONE, json_number(usage, "descriptors"));
}

static void write_undelivered(FILE *f, const json_object *manager) {
        json_object *undelivered = json_object_object_get(manager, "Undelivered");
        const char *name = "tlob_undelivered_total";

        if (!undelivered)
                return;
        metric_declare(f, name, METRIC_COUNTER,
                       "Messages to the journal and on the bus that could not be delivered.");
        json_object_object_foreach(undelivered, what, value) {
                metric_count(f, name, LABELS("what", what), json_object_get_uint64(value));
        }
}

/* No manager: tlobd did not answer. */
typedef struct Answer {
        json_object *manager, *bindings;
} Answer;

static void answer_done(Answer *answer) {
        json_object_put(answer->manager);
        json_object_put(answer->bindings);
}

static int write_metrics(FILE *f, const void *userdata) {
        const Answer *answer = userdata;
        const json_object *manager = answer->manager, *bindings = answer->bindings;

        write_up(f, manager);
        if (!manager)
                return 0;
        metric_declare(f, "tlob_build_info", METRIC_GAUGE, "1, with the version of tlobd.");
        metric_count(f, "tlob_build_info", LABELS("version", json_string(manager, "Version")), 1);
        write_usage(f, manager);
        write_undelivered(f, manager);
        write_binding_states(f, bindings);
        write_tolerance(f, bindings, "tlob_tolerance_broken",
                        "1 if more windows were over budget than are tolerated.", write_broken);
        write_tolerance(f, bindings, "tlob_tolerance_burn_rate",
                        "The part over budget, divided by the part that is tolerated.",
                        write_burn_rate);
        for (size_t i = 0; i < ELEMENTSOF(metrics); i++)
                write_metric(f, metrics + i, bindings);
        write_ends(f, bindings);
        write_times(f, bindings);
        return write_lengths(f, bindings);
}

/* Returns 0, or a negative errno after it has said what is wrong. */
static int ask(Client *client, Answer *answer) {
        _cleanup_json_ json_object *manager = NULL, *all = NULL;
        _cleanup_(filter_done) Filter filter = {};
        int r;

        r = proxy_get_manager(&client->connection, &manager);
        if (r >= 0)
                r = proxy_get_bindings(&client->connection, &all);
        if (r < 0)
                return r;
        r = filter_init(&filter, &client->options);
        if (r >= 0)
                r = filter_select(&filter, all, "Name", "Unit", 0, &answer->bindings);
        if (r >= 0)
                answer->manager = TAKE_PTR(manager);
        (void) status_of_memory(r);
        return r;
}

ExitStatus verb_metrics(Client *client, int argc, char **argv) {
        _cleanup_(answer_done) Answer answer = {};
        const char *path = client->options.output;
        int asked, r;

        if (client->output.json != JSON_OFF) {
                warnx("Metrics have a format of their own; leave out --json=");
                return STATUS_USAGE;
        }
        client->output.pager_wanted = false;
        asked = ask(client, &answer);
        if (asked < 0 && !path)
                return STATUS_FAILED;
        r = whole_file_write(path, write_metrics, &answer);
        return r < 0 ? STATUS_FAILED : asked < 0 ? STATUS_UNMEASURED : STATUS_DONE;
}
