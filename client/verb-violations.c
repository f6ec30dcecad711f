/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl violations": a line for each recent violation: how long it took in the end, and why. The
 * sentence of "monitor" and the journal says more, but a table can be compared. What it says of a
 * cause is what most of the time went to; the rest is in the JSON.
 */

#include <inttypes.h>

#include "base/duration.h"
#include "base/sentence.h"
#include "binding/binding.h"
#include "event.h"
#include "filter.h"
#include "proxy.h"
#include "report/cause.h"
#include "verbs.h"

/* The members that begin with "shown" are only for the table. */
static const Field fields[] = {
        { "shown-time", "TIME", FIELD_TEXT },      { "binding", "BINDING", FIELD_WRAPPED },
        { "shown-unit", "UNIT", FIELD_OPTIONAL },  { "shown-task", "TASK", FIELD_TEXT },
        { "shown-budget", "BUDGET", FIELD_RIGHT }, { "shown-length", "TOOK", FIELD_RIGHT },
        { "shown-cause", "CAUSE", FIELD_WRAPPED }, {},
};

/* "5ms", "15ms sleeping" */
static char *format_budget(const json_object *violation) {
        const char *which = json_string(violation, "budget");
        bool total = streq(which, budget_to_string(TLOB_BUDGET_TOTAL));
        char budget[DURATION_MAX];

        return sentence_make("%s%s%s", duration_format(json_number(violation, "budget_ns"), budget),
                             total ? "" : " ", total ? "" : which);
}

static uint32_t json_id(const json_object *violation, const char *key) {
        uint64_t id = json_number(violation, key);

        return id == UINT64_MAX ? 0 : (uint32_t) id;
}

/* As in the sentence: "nginx[4711]", "clock[717/718]". */
static char *format_task(const json_object *violation) {
        char name[TASK_NAME_MAX];

        return strdup(task_name_format(json_string(violation, "comm"), json_id(violation, "pid"),
                                       json_id(violation, "tid"), name));
}

/* Its true length; UINT64_MAX: it has not ended, or nobody knows when it has. */
static uint64_t took_ns(const json_object *violation) {
        return tlob_end_why_unseen(json_string(violation, "end"))
                       ? UINT64_MAX
                       : json_number(violation, "took_ns");
}

/* "561ms"; "20ms+" while it has not ended, or its end is not known. */
static char *format_length(const json_object *violation) {
        uint64_t took = took_ns(violation);
        uint64_t elapsed = json_number(violation, "elapsed_ns");
        char time[DURATION_MAX];

        if (took != UINT64_MAX)
                return strdup(duration_format_short(took, time));
        if (elapsed == UINT64_MAX)
                return strdup("-");
        return sentence_make("%s+", duration_format_short(elapsed, time));
}

/* The state that took most of the time that is known to have passed; TLOB_N_STATES: not known. */
static enum tlob_state main_state(const json_object *violation) {
        static const char *const spent[2][TLOB_N_STATES] = {
                { [TLOB_RUNNING] = "running_ns",
                  [TLOB_WAITING] = "waiting_ns",
                  [TLOB_SLEEPING] = "sleeping_ns" },
                { [TLOB_RUNNING] = "took_running_ns",
                  [TLOB_WAITING] = "took_waiting_ns",
                  [TLOB_SLEEPING] = "took_sleeping_ns" },
        };
        const char *const *keys = spent[took_ns(violation) != UINT64_MAX];
        enum tlob_state most = TLOB_RUNNING;

        for (unsigned i = 0; i < TLOB_N_STATES; i++)
                if (json_number(violation, keys[i]) == UINT64_MAX)
                        return TLOB_N_STATES;
                else if (json_number(violation, keys[i]) > json_number(violation, keys[most]))
                        most = i;
        return most;
}

/* Of the whole window, if it has ended, else so far. */
static uint64_t part(const json_object *violation, const char *took, const char *so_far) {
        return json_number(violation, took_ns(violation) != UINT64_MAX ? took : so_far);
}

static uint64_t running_ns(const json_object *violation) {
        return part(violation, "took_running_ns", "running_ns");
}

/* Did the hypervisor have the CPU for more than half of the time running? */
static bool is_stolen(const json_object *violation) {
        uint64_t stolen = part(violation, "took_stolen_ns", "stolen_ns");

        return stolen != UINT64_MAX && violation_is_stolen(stolen, running_ns(violation));
}

static bool is_of_probes(const json_object *violation) {
        uint64_t probes = part(violation, "took_probes_ns", "probes_ns");

        return probes != UINT64_MAX && violation_is_of_probes(probes, running_ns(violation));
}

/* Beside what it ran. */
static bool has_waited(const json_object *violation) {
        return *json_string(violation, "preempted_by") != '\0' &&
               violation_has_waited(part(violation, "took_waiting_ns", "waiting_ns"),
                                    running_ns(violation));
}

/* "blocked in folio_wait_bit", "preempted by cc1[812]"; only the state where no more is known. */
static char *format_cause(const json_object *violation) {
        const char *blocked_in = json_string(violation, "blocked_in");
        const char *preempted_by = json_string(violation, "preempted_by");
        const struct {
                enum tlob_state state;
                const char *what, *words;
        } causes[] = {
                { TLOB_SLEEPING, blocked_in, cause_words_for(blocked_in) },
                { TLOB_SLEEPING, json_string(violation, "woken_by"), "woken by" },
                { TLOB_WAITING, preempted_by, cause_words_for_peer(preempted_by) },
        };
        enum tlob_state state = main_state(violation);

        if (state == TLOB_RUNNING && is_stolen(violation))
                return strdup("preempted by " VIOLATION_HYPERVISOR);
        if (state == TLOB_RUNNING && is_of_probes(violation))
                return strdup("running, slowed by " VIOLATION_PROBES);
        if (state == TLOB_RUNNING && has_waited(violation))
                return sentence_make("running, %s %s", cause_words_for_peer(preempted_by),
                                     preempted_by);
        for (size_t i = 0; i < ELEMENTSOF(causes); i++)
                if (causes[i].state == state && *causes[i].what != '\0')
                        return sentence_make("%s %s", causes[i].words, causes[i].what);
        return strdup(tlob_state_to_string(state));
}

static int add_shown(json_object *violation) {
        static const struct {
                const char *key;
                char *(*format)(const json_object *violation);
        } texts[] = {
                { "shown-task", format_task },
                { "shown-budget", format_budget },
                { "shown-length", format_length },
                { "shown-cause", format_cause },
        };
        char time[EVENT_TIME_MAX];
        int r;

        r = json_add_string(violation, "shown-time", event_format_time(violation, true, time));
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(texts); i++) {
                _cleanup_free_ char *text = texts[i].format(violation);

                r = text ? json_add_string(violation, texts[i].key, text) : -ENOMEM;
        }
        return r;
}

static int show(Client *client, json_object *violations) {
        int r;

        if (client->output.json != JSON_OFF)
                return output_json(&client->output, violations);
        r = units_show(violations, "binding", "unit");
        for (size_t i = 0; r >= 0 && i < json_object_array_length(violations); i++)
                r = add_shown(json_object_array_get_idx(violations, i));
        if (r < 0)
                return r;
        return output_table(&client->output, fields, violations, "violation");
}

ExitStatus verb_violations(Client *client, int argc, char **argv) {
        const Options *options = &client->options;
        bool filtered = options->unit || options->binding;
        _cleanup_json_ json_object *all = NULL, *selected = NULL;
        _cleanup_(filter_done) Filter filter = {};
        int r;

        if (proxy_get_violations(&client->connection, filtered ? 0 : options->lines, &all) < 0)
                return STATUS_FAILED;
        r = filter_init(&filter, &client->connection);
        if (r >= 0)
                r = filter_select(&filter, all, "binding", "unit", options->lines, &selected);
        if (r >= 0)
                r = show(client, selected);
        return status_of_memory(r);
}
