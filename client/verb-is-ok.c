/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl is-ok": do bindings keep their budgets? For ExecCondition=, for gates of a rollout, and
 * for scripts: the exit status is the answer, and the word is for people.
 *
 * It never says "ok" for want of knowledge: what could not be measured, read or found has a word
 * and a status of its own. The counters of the daemon answer for the time since they began; the
 * journal, with all that was reported, for the time since --since=.
 */

#include <err.h>

#include "base/duration.h"
#include "journal.h"
#include "lengths.h"
#include "names.h"
#include "proxy.h"
#include "verbs.h"

typedef enum Verdict {
        VERDICT_OK,
        VERDICT_VIOLATED,
        VERDICT_UNMEASURED,
        VERDICT_UNKNOWN,
        N_VERDICTS,
} Verdict;

/* The last of several in this order that is among them is the answer. */
static const Verdict by_weight[] = {
        VERDICT_OK,
        VERDICT_UNMEASURED,
        VERDICT_UNKNOWN,
        VERDICT_VIOLATED,
};

static const struct {
        const char *word;
        ExitStatus status;
} answers[N_VERDICTS] = {
        [VERDICT_OK] = { "ok", STATUS_DONE },
        [VERDICT_VIOLATED] = { "violated", STATUS_FAILED },
        [VERDICT_UNMEASURED] = { "unmeasured", STATUS_UNMEASURED },
        [VERDICT_UNKNOWN] = { "unknown", STATUS_UNKNOWN },
};

typedef struct Check {
        Connection *connection;
        const Options *options;
        json_object *bindings; /* of tlobd */
        sd_journal *journal;   /* NULL unless --since= */
        json_object
                *recent; /* violations that tlobd remembers, for the same; NULL: not asked for */
} Check;

static void check_done(Check *check) {
        json_object_put(check->bindings);
        json_object_put(check->recent);
        if (check->journal)
                sd_journal_close(check->journal);
}

static Verdict worse(Verdict a, Verdict b) {
        for (size_t i = ELEMENTSOF(by_weight); i-- > 0;)
                if (a == by_weight[i] || b == by_weight[i])
                        return by_weight[i];
        return VERDICT_UNKNOWN;
}

/* Of a percentile, or of the number of violations. */
static Verdict judge_counters(const json_object *binding, unsigned per_mille) {
        uint64_t budget_ns = json_number(binding, "BudgetNSec"), ns;

        if (per_mille == 0)
                return json_number(binding, "Violations") == 0 ? VERDICT_OK : VERDICT_VIOLATED;
        ns = lengths_quantile(binding, per_mille);
        if (ns == UINT64_MAX)
                return VERDICT_UNMEASURED;
        return ns <= budget_ns ? VERDICT_OK : VERDICT_VIOLATED;
}

/*
 * "waiting": its unit does not run, and was measured when it did; or the file is another build than
 * the one that is to be measured, in a unit that may run.
 */
static bool is_measured(const json_object *binding) {
        const char *state = json_string(binding, "State");

        if (json_object_get_boolean(json_object_object_get(binding, "MeasuresNothing")))
                return false;
        if (streq(state, "active"))
                return true;
        return streq(state, "waiting") && !strstr(json_string(binding, "StateReason"), "BuildID=");
}

/* A binding that is switched off is left out, unless there is no other. */
static Verdict judge_bindings(const Check *check, const json_object *bindings) {
        size_t n_disabled = 0, n = json_object_array_length(bindings);
        Verdict verdict = VERDICT_OK;

        for (size_t i = 0; i < n; i++) {
                const json_object *binding = json_object_array_get_idx(bindings, i);
                bool is_disabled = streq(json_string(binding, "State"), "disabled");

                n_disabled += is_disabled;
                if (is_disabled)
                        continue;
                if (!is_measured(binding))
                        verdict = worse(verdict, VERDICT_UNMEASURED);
                if (!check->journal)
                        verdict =
                                worse(verdict, judge_counters(binding, check->options->per_mille));
        }
        return n_disabled == n ? VERDICT_UNMEASURED : verdict;
}

/* What a limit holds back is in the journal with the next report, or some time later. */
static bool is_remembered(const Check *check, const char *const *names, const char *unit) {
        uint64_t since_ns = check->options->since_usec * NSEC_PER_USEC;

        for (size_t i = 0; i < json_object_array_length(check->recent); i++) {
                const json_object *violation = json_object_array_get_idx(check->recent, i);

                if (json_number(violation, "realtime_ns") < since_ns)
                        continue;
                if (unit && streq(json_string(violation, "unit"), unit))
                        return true;
                for (size_t j = 0; names[j]; j++)
                        if (streq(json_string(violation, "binding"), names[j]))
                                return true;
        }
        return false;
}

/* Reports of which nobody knows whose they were. */
static int judge_losses(const Check *check, Verdict *verdict) {
        JournalReport report;
        int r;

        r = journal_select(check->journal, journal_writer(check->options),
                           REPORT_KIND(KIND_LOSS) | REPORT_KIND(KIND_UNWRITTEN), NULL, NULL,
                           check->options->since_usec);
        if (r >= 0)
                r = journal_next(check->journal, &report);
        if (r > 0)
                *verdict = worse(*verdict, VERDICT_UNKNOWN);
        return r;
}

/* Any report is one too many; those that were held back are counted in one. */
static int judge_journal(const Check *check, const json_object *bindings, const char *unit,
                         Verdict *verdict) {
        unsigned kinds = REPORT_KIND(KIND_VIOLATION) | REPORT_KIND(KIND_SUPPRESSION);
        size_t n = json_object_array_length(bindings), n_names = 0;
        _cleanup_free_ const char **names = calloc(n + 1, sizeof(*names));
        JournalReport report;
        int r;

        if (!names)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const json_object *binding = json_object_array_get_idx(bindings, i);

                /* What it found in other instances is not asked for. */
                if (!unit || !names_has_all_instances(binding, unit))
                        names[n_names++] = json_string(binding, "Name");
        }
        r = journal_select(check->journal, journal_writer(check->options), kinds, names, unit,
                           check->options->since_usec);
        if (r >= 0)
                r = journal_next(check->journal, &report);
        if (r > 0 || (r == 0 && check->recent && is_remembered(check, names, unit)))
                *verdict = worse(*verdict, VERDICT_VIOLATED);
        if (r >= 0)
                r = judge_losses(check, verdict);
        if (r < 0) {
                errno = -r;
                warn("Failed to read the journal");
                *verdict = worse(*verdict, VERDICT_UNKNOWN);
        }
        return 0;
}

static int judge(const Check *check, const char *name, Verdict *ret) {
        _cleanup_json_ json_object *bindings = NULL;
        _cleanup_free_ char *unit = NULL;
        int r;

        r = names_find(check->connection, check->bindings, name, &bindings, &unit);
        if (r < 0)
                return r;
        if (json_object_array_length(bindings) == 0) {
                *ret = VERDICT_UNKNOWN;
                return names_complain(check->bindings, name);
        }
        *ret = judge_bindings(check, bindings);
        return check->journal ? judge_journal(check, bindings, unit, ret) : 0;
}

static int add_answer(json_object *array, const char *name, Verdict verdict) {
        _cleanup_json_ json_object *answer = json_object_new_object();
        int r = answer ? 0 : -ENOMEM;

        if (r >= 0)
                r = json_add_string(answer, "Name", name);
        if (r >= 0)
                r = json_add_string(answer, "Result", answers[verdict].word);
        return r < 0 ? r : json_append(array, TAKE_PTR(answer));
}

/* The check is NULL: there is nothing to judge by. */
static int judge_all(Client *client, const Check *check, int argc, char **argv, Verdict *ret) {
        _cleanup_json_ json_object *array = json_object_new_array();
        Verdict sum = VERDICT_OK;
        int r = array ? 0 : -ENOMEM;

        for (int i = 0; r >= 0 && i < argc; i++) {
                Verdict verdict = VERDICT_UNKNOWN;

                if (check)
                        r = judge(check, argv[i], &verdict);
                if (r < 0)
                        break;
                sum = worse(sum, verdict);
                if (client->output.json != JSON_OFF)
                        r = add_answer(array, argv[i], verdict);
                else if (!client->options.quiet)
                        (void) puts(answers[verdict].word);
        }
        if (r >= 0 && client->output.json != JSON_OFF && !client->options.quiet)
                r = output_json(&client->output, array);
        *ret = sum;
        return r;
}

static int check_options(const Client *client) {
        const Options *options = &client->options;

        if (options->per_mille > 0 && options->since_usec > 0) {
                warnx("--percentile= is of all windows since the statistics began; leave out "
                      "--since=");
                return -EINVAL;
        }
        if (options->directory && options->since_usec == 0) {
                warnx("--directory= is for --since=; give that, too");
                return -EINVAL;
        }
        return 0;
}

/* Nothing is known of the time since --since= if the journal of other machines does not arrive. */
static int check_reach(const Check *check) {
        const Options *options = check->options;
        int r = journal_reaches(check->journal, options->since_usec);

        if (r > 0)
                return 0;
        if (r == 0) {
                warnx("The journal in %s ends before the time of --since=", options->directory);
                return -ENODATA;
        }
        errno = -r;
        warn("Failed to read the journal in %s", options->directory);
        return r;
}

/* What there is to judge by. Says what is wrong. */
static int ask(Client *client, Check *check) {
        const Options *options = check->options;
        int r = 0;

        if (options->since_usec > 0)
                r = journal_open_for(&client->connection, options->directory, &check->journal);
        if (r >= 0 && options->directory)
                r = check_reach(check);
        if (r >= 0)
                r = proxy_get_bindings(&client->connection, &check->bindings);
        if (r >= 0 && check->journal && !options->directory)
                r = proxy_get_violations(&client->connection, 0, &check->recent);
        return r;
}

ExitStatus verb_is_ok(Client *client, int argc, char **argv) {
        _cleanup_(check_done) Check check = {
                .connection = &client->connection,
                .options = &client->options,
        };
        Verdict verdict;
        bool can_judge;
        int r;

        if (check_options(client) < 0)
                return STATUS_USAGE;
        client->output.pager_wanted = false;
        can_judge = ask(client, &check) >= 0;
        r = judge_all(client, can_judge ? &check : NULL, argc, argv, &verdict);
        if (r < 0) {
                (void) status_of_memory(r);
                return STATUS_UNKNOWN;
        }
        /* That nobody could be told so is no violation. */
        r = output_flush(&client->output);
        return r < 0 && verdict != VERDICT_VIOLATED ? STATUS_UNKNOWN : answers[verdict].status;
}
