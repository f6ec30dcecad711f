/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The verbs that show what is there, and change nothing: status, list-bindings, show, violations.
 * Each reads (proxy.c), leaves out what was not asked for, and hands on to output.c; with --json=
 * the same objects go out as they came in, under their names on D-Bus.
 */

#include <err.h>
#include <inttypes.h>

#include "binding.h"
#include "duration.h"
#include "event.h"
#include "filter.h"
#include "histogram.h"
#include "proxy.h"
#include "sentence.h"
#include "verbs.h"

static const Field manager_fields[] = {
        { "Backends", "Back ends", FIELD_LIST },
        { "DeadlineMode", "Deadline mode", FIELD_TEXT },
        { "NBindings", "Bindings", FIELD_COUNT },
        { "NActive", "Active", FIELD_COUNT },
        { "Windows", "Windows", FIELD_COUNT },
        { "Violations", "Violations", FIELD_PROBLEM },
        { "Lost", "Lost reports", FIELD_PROBLEM },
        { "Suppressed", "Suppressed reports", FIELD_COUNT },
        { "Limitations", "Limitations", FIELD_LINES },
        {},
};

static const Field books_fields[] = {
        { "State", "State", FIELD_STATE },
        { "Counters", "Counters", FIELD_COUNTERS },
        {},
};

static const Field list_fields[] = {
        { "Name", "BINDING", FIELD_TEXT },
        { "Unit", "UNIT", FIELD_TEXT },
        { "State", "STATE", FIELD_STATE },
        { "Backend", "BACKEND", FIELD_TEXT },
        { "BudgetNSec", "BUDGET", FIELD_BUDGET },
        { "Windows", "WINDOWS", FIELD_COUNT },
        { "Violations", "VIOLATIONS", FIELD_PROBLEM },
        {},
};

/* The members that begin with "shown" are made for the sheet. */
static const Field all_list_fields[] = {
        { "Name", "BINDING", FIELD_TEXT },
        { "Unit", "UNIT", FIELD_TEXT },
        { "State", "STATE", FIELD_STATE },
        { "Backend", "BACKEND", FIELD_TEXT },
        { "BudgetNSec", "BUDGET", FIELD_BUDGET },
        { "Windows", "WINDOWS", FIELD_COUNT },
        { "Violations", "VIOLATIONS", FIELD_PROBLEM },
        { "BackendReason", "WHY THIS BACK END", FIELD_TEXT },
        {},
};

static const Field binding_fields[] = {
        { "State", "State", FIELD_STATE },
        { "StateReason", "Reason", FIELD_TEXT },
        { "Source", "Source", FIELD_TEXT },
        { "Unit", "Unit", FIELD_TEXT },
        { "Executable", "Executable", FIELD_TEXT },
        { "Start", "Start", FIELD_TEXT },
        { "StartOffset", "Start offset", FIELD_OFFSET },
        { "Stop", "Stop", FIELD_TEXT },
        { "StopOffset", "Stop offset", FIELD_OFFSET },
        { "BudgetNSec", "Budget", FIELD_BUDGET },
        { "Backend", "Back end", FIELD_TEXT },
        { "BackendReason", "Chosen because", FIELD_TEXT },
        { "Windows", "Windows", FIELD_COUNT },
        { "Violations", "Violations", FIELD_PROBLEM },
        { "RunningNSec", "Running", FIELD_DURATION },
        { "WaitingNSec", "Waiting", FIELD_DURATION },
        { "SleepingNSec", "Sleeping", FIELD_DURATION },
        { "shown-p50", "p50", FIELD_DURATION },
        { "shown-p90", "p90", FIELD_DURATION },
        { "shown-p99", "p99", FIELD_DURATION },
        { "shown-p99.9", "p99.9", FIELD_DURATION },
        { "MaxNSec", "Longest window", FIELD_DURATION },
        { "Counters", "Counters", FIELD_COUNTERS },
        {},
};

/* The members that begin with "shown" are only for the table. */
static const Field violation_fields[] = {
        { "shown-time", "TIME", FIELD_TEXT },
        { "binding", "BINDING", FIELD_TEXT },
        { "unit", "UNIT", FIELD_TEXT },
        { "shown-task", "TASK", FIELD_TEXT },
        { "shown-budget", "BUDGET", FIELD_TEXT },
        { "elapsed_ns", "ELAPSED", FIELD_DURATION },
        { "running_ns", "RUNNING", FIELD_DURATION },
        { "waiting_ns", "WAITING", FIELD_DURATION },
        { "sleeping_ns", "SLEEPING", FIELD_DURATION },
        { "state", "STATE", FIELD_TEXT },
        {},
};

static int show_books(Output *output, json_object *bindings) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < json_object_array_length(bindings); i++) {
                json_object *binding = json_object_array_get_idx(bindings, i);

                r = output_sheet(output, json_string(binding, "Name"), books_fields, binding);
        }
        return r;
}

static int show_status(Output *output, json_object *manager, json_object *bindings) {
        _cleanup_free_ char *title = NULL;
        int r;

        if (output->json != JSON_OFF) {
                if (bindings) {
                        r = json_add(manager, "Bindings", json_object_get(bindings));
                        if (r < 0)
                                return r;
                }
                return output_json(output, manager);
        }

        title = sentence_make("tlobd %s", json_string(manager, "Version"));
        if (!title)
                return -ENOMEM;
        r = output_sheet(output, title, manager_fields, manager);
        if (r < 0 || !bindings)
                return r;
        return show_books(output, bindings);
}

ExitStatus verb_status(Client *client, int argc, char **argv) {
        _cleanup_json_ json_object *manager = NULL, *bindings = NULL;

        if (proxy_get_manager(&client->connection, &manager) < 0)
                return STATUS_FAILED;
        if (client->options.all && proxy_get_bindings(&client->connection, &bindings) < 0)
                return STATUS_FAILED;
        return status_of_memory(show_status(&client->output, manager, bindings));
}

/* The first max rows that pass the filter; max 0: all. */
static int select_rows(json_object *rows, const Filter *filter, const char *binding_key,
                       const char *unit_key, size_t max, json_object **ret) {
        _cleanup_json_ json_object *selected = json_object_new_array();

        if (!selected)
                return -ENOMEM;
        for (size_t i = 0; i < json_object_array_length(rows); i++) {
                json_object *row = json_object_array_get_idx(rows, i);
                int r;

                if (max > 0 && json_object_array_length(selected) >= max)
                        break;
                if (!filter_matches(filter, json_string(row, binding_key),
                                    json_string(row, unit_key)))
                        continue;
                r = json_append(selected, json_object_get(row));
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(selected);
        return 0;
}

static bool any_failed(json_object *bindings) {
        for (size_t i = 0; i < json_object_array_length(bindings); i++)
                if (streq(json_string(json_object_array_get_idx(bindings, i), "State"), "failed"))
                        return true;
        return false;
}

static int show_list(Output *output, const Field *fields, json_object *bindings) {
        int r;

        if (output->json != JSON_OFF)
                return output_json(output, bindings);
        r = output_table(output, fields, bindings, "binding");
        if (r >= 0 && output->legend && any_failed(bindings))
                (void) puts("To see why one failed, use 'tlobctl show BINDING'.");
        return r;
}

ExitStatus verb_list_bindings(Client *client, int argc, char **argv) {
        _cleanup_json_ json_object *all = NULL, *selected = NULL;
        _cleanup_(filter_done) Filter filter = {};
        bool why = client->options.all;
        int r;

        r = why ? proxy_get_bindings(&client->connection, &all)
                : proxy_list_bindings(&client->connection, &all);
        if (r < 0)
                return STATUS_FAILED;
        r = filter_init(&filter, &client->options);
        if (r >= 0)
                r = select_rows(all, &filter, "Name", "Unit", 0, &selected);
        if (r >= 0)
                r = show_list(&client->output, why ? all_list_fields : list_fields, selected);
        return status_of_memory(r);
}

/* [[upper, count], ...]; null for the upper bound that there is not. */
static size_t read_histogram(const json_object *binding, HistogramBucket **ret) {
        json_object *array = json_object_object_get(binding, "Histogram");
        size_t n =
                json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
        HistogramBucket *buckets = calloc(n + 1, sizeof(*buckets));

        for (size_t i = 0; buckets && i < n; i++) {
                json_object *pair = json_object_array_get_idx(array, i),
                            *upper = json_object_array_get_idx(pair, 0);

                buckets[i] = (HistogramBucket){
                        .upper_ns = upper ? json_object_get_uint64(upper) : UINT64_MAX,
                        .count = json_object_get_uint64(json_object_array_get_idx(pair, 1)),
                };
        }
        *ret = buckets;
        return buckets ? n : 0;
}

static int add_percentiles(json_object *binding) {
        static const struct {
                const char *name;
                unsigned per_mille;
        } percentiles[] = {
                { "shown-p50", 500 },
                { "shown-p90", 900 },
                { "shown-p99", 990 },
                { "shown-p99.9", 999 },
        };
        _cleanup_free_ HistogramBucket *buckets = NULL;
        size_t n = read_histogram(binding, &buckets);

        for (size_t i = 0; n > 0 && i < ELEMENTSOF(percentiles); i++) {
                uint64_t ns = histogram_quantile(buckets, n, percentiles[i].per_mille,
                                                 json_number(binding, "MaxNSec"));
                int r;

                r = json_add(binding, percentiles[i].name, json_object_new_uint64(ns));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int show_binding(Output *output, json_object *binding) {
        int r;

        r = add_percentiles(binding);
        if (r < 0)
                return r;
        return output_sheet(output, json_string(binding, "Name"), binding_fields, binding);
}

ExitStatus verb_show(Client *client, int argc, char **argv) {
        _cleanup_json_ json_object *all = json_object_new_array();
        ExitStatus status = STATUS_DONE;
        int r = all ? 0 : -ENOMEM;

        for (int i = 0; r >= 0 && i < argc; i++) {
                _cleanup_json_ json_object *binding = NULL;

                if (proxy_get_binding(&client->connection, argv[i], &binding) < 0) {
                        status = STATUS_FAILED;
                        continue;
                }
                if (client->output.json != JSON_OFF)
                        r = json_append(all, TAKE_PTR(binding));
                else
                        r = show_binding(&client->output, binding);
        }
        if (r >= 0 && client->output.json != JSON_OFF)
                r = output_json(&client->output, all);
        return r < 0 ? status_of_memory(r) : status;
}

/* "5ms", "15ms sleeping" */
static char *format_budget(const json_object *violation) {
        const char *which = json_string(violation, "budget");
        bool total = streq(which, budget_to_string(TLOB_BUDGET_TOTAL));
        char budget[DURATION_MAX];

        return sentence_make("%s%s%s", duration_format(json_number(violation, "budget_ns"), budget),
                             total ? "" : " ", total ? "" : which);
}

/* "nginx[4711]" */
static char *format_task(const json_object *violation) {
        uint64_t tid = json_number(violation, "tid"), pid = json_number(violation, "pid");
        uint64_t id = pid == UINT64_MAX || pid == 0 ? tid : pid;

        if (id == UINT64_MAX || id == 0)
                return strdup(json_string(violation, "comm"));
        return sentence_make("%s[%" PRIu64 "]", json_string(violation, "comm"), id);
}

static int add_shown(json_object *violation, bool local) {
        _cleanup_free_ char *budget = format_budget(violation), *task = format_task(violation);
        char time[EVENT_TIME_MAX];
        int r;

        if (!budget || !task)
                return -ENOMEM;
        r = json_add_string(violation, "shown-time", event_format_time(violation, local, time));
        if (r >= 0)
                r = json_add_string(violation, "shown-budget", budget);
        if (r >= 0)
                r = json_add_string(violation, "shown-task", task);
        return r;
}

static int show_violations(Client *client, json_object *violations) {
        bool local = connection_is_local(&client->connection);
        int r = 0;

        if (client->output.json != JSON_OFF)
                return output_json(&client->output, violations);
        for (size_t i = 0; r >= 0 && i < json_object_array_length(violations); i++)
                r = add_shown(json_object_array_get_idx(violations, i), local);
        if (r < 0)
                return r;
        return output_table(&client->output, violation_fields, violations, "violation");
}

ExitStatus verb_violations(Client *client, int argc, char **argv) {
        const Options *options = &client->options;
        bool filtered = options->unit || options->binding;
        _cleanup_json_ json_object *all = NULL, *selected = NULL;
        _cleanup_(filter_done) Filter filter = {};
        int r;

        if (proxy_get_violations(&client->connection, filtered ? 0 : options->lines, &all) < 0)
                return STATUS_FAILED;
        r = filter_init(&filter, options);
        if (r >= 0)
                r = select_rows(all, &filter, "binding", "unit", options->lines, &selected);
        if (r >= 0)
                r = show_violations(client, selected);
        return status_of_memory(r);
}
