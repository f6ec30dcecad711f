/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The metrics: one table of families, each with what takes it out of the answer of tlobd. They are
 * counters as they are, so that rates and percentiles are up to those who ask; what is not known is
 * left out rather than zero.
 */

#include "metric-source.h"

#include "filter.h"
#include "lengths.h"
#include "proxy.h"

#define LABELS(...) ((const char *const[]) { __VA_ARGS__, NULL })
#define OF(binding) "binding", json_string(binding, "Name"), "unit", json_string(binding, "Unit")

typedef struct Source Source;

struct Source {
        MetricFamily family;
        /* What is asked for once. NULL: each binding is. */
        void (*of_manager)(const Source *source, const json_object *manager,
                           const MetricSink *sink);
        /* Returns 0 or -ENOMEM. */
        int (*of_binding)(const Source *source, const json_object *binding, const MetricSink *sink);
        const char *property;
        const char *member; /* of a property that is a dictionary; or NULL */
};

static const char *const binding_states[] = { "active", "waiting", "failed", "disabled", NULL };

static const struct {
        const char *state, *property;
} times[] = {
        { "running", "RunningNSec" },
        { "waiting", "WaitingNSec" },
        { "sleeping", "SleepingNSec" },
};

/* Ways in which windows end, as in the property "Counters". */
static const char *const ends[] = {
        "in-budget", "violated", "exit", "exec", "abandoned", "switched", "removed", "over-limit",
};

static uint64_t number_of(const Source *source, const json_object *object) {
        const json_object *dictionary;

        if (!source->member)
                return json_number(object, source->property);
        dictionary = json_object_object_get(object, source->property);
        return dictionary ? json_number(dictionary, source->member) : UINT64_MAX;
}

static void give_up(const Source *source, const json_object *manager, const MetricSink *sink) {
        sink->count(sink->userdata, &source->family, LABELS(NULL), manager != NULL);
}

static void give_version(const Source *source, const json_object *manager, const MetricSink *sink) {
        sink->info(sink->userdata, &source->family, "version", json_string(manager, "Version"));
}

static void give_usage(const Source *source, const json_object *manager, const MetricSink *sink) {
        uint64_t value = number_of(source, manager);

        if (value != UINT64_MAX)
                sink->count(sink->userdata, &source->family, LABELS(NULL), value);
}

static void give_usage_time(const Source *source, const json_object *manager,
                            const MetricSink *sink) {
        uint64_t ns = number_of(source, manager);

        if (ns != UINT64_MAX)
                sink->duration(sink->userdata, &source->family, LABELS(NULL), ns);
}

static void give_undelivered(const Source *source, const json_object *manager,
                             const MetricSink *sink) {
        json_object *undelivered = json_object_object_get(manager, source->property);

        if (!json_object_is_type(undelivered, json_type_object))
                return;
        json_object_object_foreach(undelivered, what, value) {
                sink->count(sink->userdata, &source->family, LABELS("what", what),
                            json_object_get_uint64(value));
        }
}

static int give_state(const Source *source, const json_object *binding, const MetricSink *sink) {
        sink->state(sink->userdata, &source->family, LABELS(OF(binding)), binding_states,
                    json_string(binding, source->property));
        return 0;
}

/* Of bindings that have a tolerance, where it can be judged. */
static bool is_judged(const json_object *binding) {
        const char *state = json_string(binding, "ToleranceState");

        return *state != '\0' && !streq(state, "unknown");
}

static int give_broken(const Source *source, const json_object *binding, const MetricSink *sink) {
        if (is_judged(binding))
                sink->count(sink->userdata, &source->family, LABELS(OF(binding)),
                            streq(json_string(binding, source->property), "broken"));
        return 0;
}

static int give_burn_rate(const Source *source, const json_object *binding,
                          const MetricSink *sink) {
        if (is_judged(binding))
                sink->ratio(
                        sink->userdata, &source->family, LABELS(OF(binding)),
                        json_object_get_double(json_object_object_get(binding, source->property)));
        return 0;
}

static int give_count(const Source *source, const json_object *binding, const MetricSink *sink) {
        uint64_t value = number_of(source, binding);

        if (value != UINT64_MAX)
                sink->count(sink->userdata, &source->family, LABELS(OF(binding)), value);
        return 0;
}

/* UINT64_MAX is a value only of budgets. */
static int give_budget(const Source *source, const json_object *binding, const MetricSink *sink) {
        sink->duration(sink->userdata, &source->family, LABELS(OF(binding)),
                       number_of(source, binding));
        return 0;
}

static int give_duration(const Source *source, const json_object *binding, const MetricSink *sink) {
        uint64_t ns = number_of(source, binding);

        if (ns != UINT64_MAX)
                sink->duration(sink->userdata, &source->family, LABELS(OF(binding)), ns);
        return 0;
}

static int give_ends(const Source *source, const json_object *binding, const MetricSink *sink) {
        const json_object *counters = json_object_object_get(binding, source->property);

        for (size_t k = 0; counters && k < ELEMENTSOF(ends); k++) {
                uint64_t value = json_number(counters, ends[k]);

                if (value != UINT64_MAX)
                        sink->count(sink->userdata, &source->family,
                                    LABELS(OF(binding), "end", ends[k]), value);
        }
        return 0;
}

static int give_times(const Source *source, const json_object *binding, const MetricSink *sink) {
        for (size_t k = 0; k < ELEMENTSOF(times); k++) {
                uint64_t ns = json_number(binding, times[k].property);

                if (ns != UINT64_MAX)
                        sink->duration(sink->userdata, &source->family,
                                       LABELS(OF(binding), "state", times[k].state), ns);
        }
        return 0;
}

/* A daemon that is older tells the parts only. UINT64_MAX: it is not known. */
static uint64_t sum_of(const json_object *binding) {
        uint64_t sum = json_number(binding, "ElapsedNSec");

        if (sum != UINT64_MAX)
                return sum;
        sum = 0;
        for (size_t k = 0; k < ELEMENTSOF(times); k++) {
                uint64_t ns = json_number(binding, times[k].property);

                if (ns == UINT64_MAX)
                        return UINT64_MAX;
                sum += ns;
        }
        return sum;
}

/* There are none of a back end that does not know them. */
static int give_lengths(const Source *source, const json_object *binding, const MetricSink *sink) {
        const json_object *array = json_object_object_get(binding, source->property);
        _cleanup_free_ HistogramBucket *buckets = NULL;
        MetricLengths lengths = {
                .n = lengths_read(binding, &buckets),
                .sum_ns = sum_of(binding),
                .max_ns = json_number(binding, "MaxNSec"),
        };

        if (lengths.n < json_length(array))
                return -ENOMEM;
        lengths.buckets = buckets;
        if (lengths.n > 0 || lengths.sum_ns != UINT64_MAX)
                sink->lengths(sink->userdata, &source->family, LABELS(OF(binding)), &lengths);
        return 0;
}

static const Source sources[] = {
        { { "tlob_up", "Up", METRIC_GAUGE, "1 if tlobd has answered; 0: there is nothing else." },
          give_up },
        { { "tlob_build_info", "Version", METRIC_INFO, "The version of tlobd." }, give_version },
        { { "tlob_process_cpu_seconds_total", "ProcessCPUNSec", METRIC_COUNTER,
            "CPU time of tlobd itself." },
          give_usage_time,
          NULL,
          "Usage",
          "cpu-ns" },
        { { "tlob_process_resident_memory_bytes", "ProcessMemoryBytes", METRIC_GAUGE,
            "Memory of tlobd." },
          give_usage,
          NULL,
          "Usage",
          "memory-bytes" },
        { { "tlob_process_open_fds", "ProcessDescriptors", METRIC_GAUGE,
            "File descriptors of tlobd." },
          give_usage,
          NULL,
          "Usage",
          "descriptors" },
        { { "tlob_undelivered_total", "Undelivered", METRIC_COUNTER,
            "Messages to the journal and on the bus that could not be delivered." },
          give_undelivered,
          NULL,
          "Undelivered" },
        { { "tlob_binding_state", "State", METRIC_STATE, "The state that the binding is in." },
          NULL,
          give_state,
          "State" },
        { { "tlob_tolerance_broken", "ToleranceBroken", METRIC_GAUGE,
            "1 if more windows were over budget than are tolerated." },
          NULL,
          give_broken,
          "ToleranceState" },
        { { "tlob_tolerance_burn_rate", "BurnRate", METRIC_GAUGE,
            "The part over budget, divided by the part that is tolerated." },
          NULL,
          give_burn_rate,
          "BurnRate" },
        { { "tlob_violations_total", "Violations", METRIC_COUNTER,
            "Windows that have not kept their budget, reported or held back." },
          NULL,
          give_count,
          "Violations" },
        { { "tlob_windows_total", "Windows", METRIC_COUNTER, "Windows that have begun." },
          NULL,
          give_count,
          "Windows" },
        { { "tlob_budget_seconds", "BudgetNSec", METRIC_GAUGE, "What a window may take." },
          NULL,
          give_budget,
          "Budgets",
          "total" },
        { { "tlob_violations_suppressed_total", "ViolationsSuppressed", METRIC_COUNTER,
            "Violations whose report was held back by a limit." },
          NULL,
          give_count,
          "Counters",
          "suppressed" },
        { { "tlob_reports_lost_total", "ReportsLost", METRIC_COUNTER,
            "Reports that were lost because a buffer was full." },
          NULL,
          give_count,
          "Counters",
          "lost" },
        { { "tlob_window_seconds", "WindowNSec", METRIC_LENGTHS,
            "How long windows took that have ended by themselves." },
          NULL,
          give_lengths,
          "Histogram" },
        { { "tlob_window_state_seconds_total", "WindowStateNSec", METRIC_COUNTER,
            "What the windows that have ended took, by the state of their task." },
          NULL,
          give_times },
        { { "tlob_windows_ended_total", "WindowsEnded", METRIC_COUNTER,
            "Windows that have ended, by how." },
          NULL,
          give_ends,
          "Counters" },
        { { "tlob_windows_without_traps_total", "WindowsWithoutTraps", METRIC_COUNTER,
            "Windows of marks that the program has measured itself." },
          NULL,
          give_count,
          "Counters",
          "without-traps" },
        { { "tlob_windows_open", "WindowsOpen", METRIC_GAUGE,
            "Windows that have begun and not ended." },
          NULL,
          give_count,
          "Counters",
          "open" },
        { { "tlob_probes_seconds_total", "ProbesNSec", METRIC_COUNTER,
            "CPU time that the probes have taken, estimated; bindings at one place share them." },
          NULL,
          give_duration,
          "ProbesNSec" },
};

const MetricFamily *metric_source_family(size_t i) {
        return i < ELEMENTSOF(sources) ? &sources[i].family : NULL;
}

static int give(const Source *source, const MetricAnswer *answer, const MetricSink *sink) {
        sink->announce(sink->userdata, &source->family);
        if (source->of_manager) {
                source->of_manager(source, answer->manager, sink);
                return 0;
        }
        for (size_t i = 0; i < json_object_array_length(answer->bindings); i++) {
                int r = source->of_binding(source, json_object_array_get_idx(answer->bindings, i),
                                           sink);

                if (r < 0)
                        return r;
        }
        return 0;
}

int metric_source_list(const MetricAnswer *answer, const MetricSink *sink) {
        /* The first is whether there is anything else. */
        size_t n = answer->manager ? ELEMENTSOF(sources) : 1;

        for (size_t i = 0; i < n; i++) {
                int r = give(sources + i, answer, sink);

                if (r < 0)
                        return r;
        }
        return 0;
}

void metric_answer_done(MetricAnswer *answer) {
        json_object_put(answer->manager);
        json_object_put(answer->bindings);
        *answer = (MetricAnswer) {};
}

int metric_source_ask(Client *client, MetricAnswer *answer) {
        _cleanup_json_ json_object *manager = NULL, *all = NULL;
        _cleanup_(filter_done) Filter filter = {};
        int r;

        r = proxy_get_manager(&client->connection, &manager);
        if (r >= 0)
                r = proxy_get_bindings(&client->connection, &all);
        if (r < 0)
                return r;
        r = filter_init(&filter, &client->connection);
        if (r >= 0)
                r = filter_select(&filter, all, "Name", "Unit", 0, &answer->bindings);
        if (r >= 0)
                answer->manager = TAKE_PTR(manager);
        (void) status_of_memory(r);
        return r;
}
