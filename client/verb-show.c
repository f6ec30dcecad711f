/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The verbs that show what is there, and change nothing: status, list-bindings, show.
 * Each reads (proxy.c), leaves out what was not asked for, and hands on to output.c; with --json=
 * the same objects go out as they came in, under their names on D-Bus.
 */

#include <err.h>
#include <inttypes.h>

#include "base/budget.h"
#include "base/duration.h"
#include "base/sentence.h"
#include "binding/binding.h"
#include "filter.h"
#include "lengths.h"
#include "proxy.h"
#include "report/tolerance.h"
#include "verbs.h"

static const Field manager_fields[] = {
        { "Backends", "Back ends", FIELD_LIST },
        { "DeadlineMode", "Deadline mode", FIELD_TEXT },
        { "NBindings", "Bindings", FIELD_COUNT },
        { "NActive", "Active", FIELD_COUNT },
        { "NFailed", "Failed", FIELD_PROBLEM },
        { "shown-users", "For users", FIELD_OPTIONAL },
        { "Windows", "Windows", FIELD_COUNT },
        { "Violations", "Violations", FIELD_PROBLEM },
        { "Lost", "Lost reports", FIELD_PROBLEM },
        { "Suppressed", "Suppressed reports", FIELD_COUNT },
        { "Undelivered", "Undelivered", FIELD_LOSSES },
        { "ProbesNSec", "Overhead", FIELD_DURATION },
        { "shown-usage", "tlobd takes", FIELD_TEXT },
        { "Limitations", "Limitations", FIELD_LINES },
        {},
};

static const Field books_fields[] = {
        { "State", "State", FIELD_STATE },
        { "Counters", "Counters", FIELD_COUNTERS },
        {},
};

/* The members that begin with "shown" are made for tables and sheets. */
static const Field list_fields[] = {
        { "Name", "BINDING", FIELD_WRAPPED },
        { "shown-unit", "UNIT", FIELD_OPTIONAL },
        { "State", "STATE", FIELD_STATE },
        { "Backend", "BACKEND", FIELD_TEXT },
        { "BudgetNSec", "BUDGET", FIELD_BUDGET },
        { "Windows", "WINDOWS", FIELD_COUNT },
        { "Violations", "VIOLATIONS", FIELD_PROBLEM },
        {},
};

static const Field all_list_fields[] = {
        { "Name", "BINDING", FIELD_WRAPPED },
        { "shown-unit", "UNIT", FIELD_OPTIONAL },
        { "State", "STATE", FIELD_STATE },
        { "Backend", "BACKEND", FIELD_TEXT },
        { "BudgetNSec", "BUDGET", FIELD_BUDGET },
        { "Windows", "WINDOWS", FIELD_COUNT },
        { "Violations", "VIOLATIONS", FIELD_PROBLEM },
        { "BackendReason", "REASON", FIELD_WRAPPED },
        {},
};

static const Field binding_fields[] = {
        { "State", "State", FIELD_STATE },
        { "StateReason", "Reason", FIELD_TEXT },
        { "Source", "Source", FIELD_TEXT },
        { "Unit", "Unit", FIELD_TEXT },
        { "Executable", "Executable", FIELD_TEXT },
        { "BuildID", "Build ID", FIELD_TEXT },
        { "Start", "Start", FIELD_TEXT },
        { "StartOffset", "Start offset", FIELD_OFFSET },
        { "StartNote", "Starts at", FIELD_TEXT },
        { "Stop", "Stop", FIELD_TEXT },
        { "StopOffset", "Stop offset", FIELD_OFFSET },
        { "StopNote", "Stops at", FIELD_TEXT },
        { "Key", "Key", FIELD_TEXT },
        { "shown-budget", "Budget", FIELD_TEXT },
        { "Backend", "Back end", FIELD_TEXT },
        { "BackendReason", "Chosen because", FIELD_TEXT },
        { "Reach", "Probes in", FIELD_TEXT },
        { "Price", "A window costs", FIELD_TEXT },
        { "Cost", "Cost", FIELD_TEXT },
        { "Windows", "Windows", FIELD_COUNT },
        { "shown-untrapped", "Without traps", FIELD_TEXT },
        { "Violations", "Violations", FIELD_PROBLEM },
        { "RunningNSec", "Running", FIELD_DURATION },
        { "WaitingNSec", "Waiting", FIELD_DURATION },
        { "SleepingNSec", "Sleeping", FIELD_DURATION },
        { "shown-p50", "p50", FIELD_DURATION },
        { "shown-p90", "p90", FIELD_DURATION },
        { "shown-p99", "p99", FIELD_DURATION },
        { "shown-p99.9", "p99.9", FIELD_DURATION },
        { "MaxNSec", "Longest window", FIELD_DURATION },
        { "shown-builds", "Builds", FIELD_LINES },
        { "shown-action", "On violation", FIELD_TEXT },
        { "shown-tolerance", "Tolerance", FIELD_TEXT },
        { "ProbesNSec", "Overhead", FIELD_DURATION },
        { "Counters", "Counters", FIELD_COUNTERS },
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

/* What to do next, of all bindings and those that failed. */
static void hint(const Options *options, uint64_t n, uint64_t n_failed) {
        const char *scope = options_scope_text(options);

        if (n == 0 && (options->host || options->machine))
                (void) printf("\nThere are no bindings yet. 'tlobctl%s add-binding' tries one "
                              "until the next boot;\nsee tlobctl(1).\n",
                              scope);
        else if (n == 0)
                (void) printf(
                        "\nThere are no bindings yet. 'tlobctl%s edit UNIT' writes some for a "
                        "service, and\n'tlobctl%s add-binding' tries one until the next %s; "
                        "see tlobctl(1).\n",
                        scope, scope, options->user ? "logout" : "boot");
        else if (n_failed > 0 && n_failed != UINT64_MAX)
                (void) printf("\n'tlobctl%s list-bindings' shows which failed, and 'tlobctl%s show "
                              "BINDING' why.\n",
                              scope, scope);
}

/* A daemon that is older does not tell. */
static int add_usage(json_object *manager) {
        const json_object *usage = json_object_object_get(manager, "Usage");
        _cleanup_free_ char *text = NULL;
        char cpu[DURATION_MAX];

        if (!usage)
                return 0;
        text = sentence_make(
                "%.1f MiB of memory, %" PRIu64 " of %" PRIu64 " file descriptors, %s of CPU time",
                (double) json_number(usage, "memory-bytes") / (1 << 20),
                json_number(usage, "descriptors"), json_number(usage, "descriptors-max"),
                duration_format_short(json_number(usage, "cpu-ns"), cpu));
        return text ? json_add_string(manager, "shown-usage", text) : -ENOMEM;
}

/* Where there are any: they are nobody's but theirs. */
static int add_users(json_object *manager) {
        uint64_t n = json_number(manager, "NUserBindings");
        _cleanup_free_ char *text = NULL;

        if (n == 0 || n == UINT64_MAX)
                return 0;
        text = sentence_make("%" PRIu64 " bindings, which 'tlobctl --user' shows to them", n);
        return text ? json_add_string(manager, "shown-users", text) : -ENOMEM;
}

static int show_status(Client *client, json_object *manager, json_object *bindings) {
        Output *output = &client->output;
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
        r = add_usage(manager);
        if (r >= 0)
                r = add_users(manager);
        if (r >= 0)
                r = output_sheet(output, title, manager_fields, manager);
        if (r >= 0 && bindings)
                r = show_books(output, bindings);
        if (r >= 0 && output->legend)
                hint(&client->options, json_number(manager, "NBindings"),
                     json_number(manager, "NFailed"));
        return r;
}

ExitStatus verb_status(Client *client, int argc, char **argv) {
        _cleanup_json_ json_object *manager = NULL, *bindings = NULL;

        if (proxy_get_manager(&client->connection, &manager) < 0)
                return STATUS_FAILED;
        if (client->options.all && proxy_get_bindings(&client->connection, &bindings) < 0)
                return STATUS_FAILED;
        return status_of_memory(show_status(client, manager, bindings));
}

static bool any_failed(json_object *bindings) {
        for (size_t i = 0; i < json_object_array_length(bindings); i++)
                if (streq(json_string(json_object_array_get_idx(bindings, i), "State"), "failed"))
                        return true;
        return false;
}

static int show_list(Client *client, const Field *fields, json_object *bindings, bool is_all) {
        Output *output = &client->output;
        int r;

        if (output->json != JSON_OFF)
                return output_json(output, bindings);
        r = units_show(bindings, "Name", "Unit");
        if (r >= 0)
                r = output_table(output, fields, bindings, "binding");
        if (r < 0 || !output->legend)
                return r;
        if (any_failed(bindings))
                (void) printf("To see why one failed, use 'tlobctl%s show BINDING'.\n",
                              options_scope_text(&client->options));
        else if (is_all && json_object_array_length(bindings) == 0)
                hint(&client->options, 0, 0);
        return 0;
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
        r = filter_init(&filter, &client->connection);
        if (r >= 0)
                r = filter_select(&filter, all, "Name", "Unit", 0, &selected);
        if (r >= 0)
                r = show_list(client, why ? all_list_fields : list_fields, selected,
                              json_object_array_length(all) == 0);
        return status_of_memory(r);
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
        size_t n = lengths_read(binding, &buckets);

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

/* "3fe2...: p50 1.0ms, p99 4.1ms, p99.9 5.0ms of 12345 windows" */
static char *describe_build(json_object *build) {
        const char *id = json_object_get_string(json_item(build, 0));
        char p50[DURATION_MAX], p99[DURATION_MAX], p999[DURATION_MAX];
        _cleanup_free_ HistogramBucket *buckets = NULL;
        uint64_t windows;
        size_t n;

        n = lengths_read_array(json_item(build, 1), &buckets);
        windows = lengths_count(buckets, n);
        if (windows == 0)
                return sentence_make("%.12s: no windows yet", id ?: "");
        return sentence_make(
                "%.12s: p50 %s, p99 %s, p99.9 %s of %" PRIu64 " windows", id ?: "",
                duration_format_short(histogram_quantile(buckets, n, 500, UINT64_MAX), p50),
                duration_format_short(histogram_quantile(buckets, n, 990, UINT64_MAX), p99),
                duration_format_short(histogram_quantile(buckets, n, 999, UINT64_MAX), p999),
                windows);
}

/* The build that is measured, and the one before; a daemon that is older does not tell. */
static int add_builds(json_object *binding) {
        json_object *builds = json_object_object_get(binding, "Builds");
        json_object *lines = json_object_new_array();
        int r = lines ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < json_length(builds); i++) {
                _cleanup_free_ char *line = describe_build(json_item(builds, i));

                r = line ? json_append(lines, json_object_new_string(line)) : -ENOMEM;
        }
        if (r < 0) {
                json_object_put(lines);
                return r;
        }
        return json_add(binding, "shown-builds", lines);
}

/* ", sleeping 100ms, minimum 2ms" */
static int describe_other_budgets(const json_object *budgets, char **ret) {
        _cleanup_free_ char *text = strdup("");
        char time[DURATION_MAX];

        for (unsigned i = TLOB_BUDGET_TOTAL + 1; text && i < TLOB_N_BUDGETS; i++) {
                uint64_t ns = json_number(budgets, budget_to_string(i));
                char *longer;

                if (ns == UINT64_MAX)
                        continue;
                longer = sentence_make("%s, %s %s", text, budget_to_string(i),
                                       duration_format(ns, time));
                free(text);
                text = longer;
        }
        *ret = TAKE_PTR(text);
        return *ret ? 0 : -ENOMEM;
}

/* The budgets, and that the total is another than what is configured. */
static int add_budget(json_object *binding) {
        json_object *budgets = json_object_object_get(binding, "Budgets");
        uint64_t total = json_number(budgets, "total");
        uint64_t configured =
                json_number(json_object_object_get(binding, "ConfiguredBudgets"), "total");
        _cleanup_free_ char *others = NULL, *text = NULL;
        char now[DURATION_MAX], before[DURATION_MAX];
        int r;

        r = describe_other_budgets(budgets, &others);
        if (r < 0)
                return r;
        (void) duration_format(total, now);
        if (total != configured)
                text = sentence_make("%s, by set-budget; configured is %s%s", now,
                                     duration_format(configured, before), others);
        else if (total == UINT64_MAX && *others != '\0')
                text = strdup(others + strlen(", "));
        else
                text = sentence_make("%s%s", now, others);
        return text ? json_add_string(binding, "shown-budget", text) : -ENOMEM;
}

/* Rounded down: all of them are only those that are 100%. */
static char *describe_untrapped(uint64_t untrapped, uint64_t windows) {
        uint64_t per_mille = untrapped <= windows ? untrapped * 1000 / windows : 1000;

        if (untrapped == 0)
                return sentence_make("none of %" PRIu64 " windows", windows);
        if (per_mille == 0)
                return strdup("less than 0.1% of windows");
        return sentence_make("%" PRIu64 ".%" PRIu64 "%% of windows", per_mille / 10,
                             per_mille % 10);
}

/* Which way a mark is measured; others have no such counter. */
static int add_untrapped(json_object *binding) {
        const json_object *counters = json_object_object_get(binding, "Counters");
        uint64_t windows = json_number(binding, "Windows");
        uint64_t untrapped = json_number(counters, "without-traps");
        _cleanup_free_ char *text = NULL;

        if (windows == 0 || windows == UINT64_MAX || untrapped == UINT64_MAX)
                return 0;
        text = describe_untrapped(untrapped, windows);
        return text ? json_add_string(binding, "shown-untrapped", text) : -ENOMEM;
}

/* "capture@.service: started 2 times, not started 5 times" */
static int add_action(json_object *binding) {
        const char *unit = json_string(binding, "OnViolation");
        _cleanup_free_ char *text = NULL;

        if (*unit == '\0')
                return 0;
        text = sentence_make("%s: started %" PRIu64 " times, not started %" PRIu64 " times", unit,
                             json_number(binding, "OnViolationStarted"),
                             json_number(binding, "OnViolationSkipped"));
        return text ? json_add_string(binding, "shown-action", text) : -ENOMEM;
}

/* "kept: 2 of 1400 windows over budget in 1h; 0.1% are tolerated (burn rate 1.43)" */
static int add_tolerance(json_object *binding) {
        const char *tolerance = json_string(binding, "Tolerance");
        _cleanup_free_ char *text = NULL, *shown = NULL;
        json_object *rate = NULL;

        if (*tolerance == '\0')
                return 0;
        (void) json_object_object_get_ex(binding, "BurnRate", &rate);
        text = tolerance_describe(json_number(binding, "ToleranceViolations"),
                                  json_number(binding, "ToleranceWindows"),
                                  json_number(binding, "ToleranceWindowNSec"), tolerance,
                                  json_object_get_double(rate));
        if (text)
                shown = sentence_make("%s: %s", json_string(binding, "ToleranceState"), text);
        return shown ? json_add_string(binding, "shown-tolerance", shown) : -ENOMEM;
}

static int show_binding(Output *output, json_object *binding) {
        int r;

        r = add_percentiles(binding);
        if (r >= 0)
                r = add_builds(binding);
        if (r >= 0)
                r = add_budget(binding);
        if (r >= 0)
                r = add_untrapped(binding);
        if (r >= 0)
                r = add_action(binding);
        if (r >= 0)
                r = add_tolerance(binding);
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
