/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report-entries.h"

#include "base/sentence.h"
#include "report/cause.h"
#include "report/violation.h"

/* A binding, or a unit: by the name of the binding, or because its task was in it. */
static bool is_wanted(Wanted *wanted, const char *binding, const char *unit) {
        bool is_any = !wanted->units[0];

        for (size_t i = 0; wanted->units[i]; i++) {
                size_t n = strlen(wanted->units[i]);

                if (streq(binding, wanted->names[i]) || streq(unit, wanted->units[i]) ||
                    (strncmp(binding, wanted->units[i], n) == 0 && binding[n] == '/'))
                        is_any = wanted->met[i] = true;
        }
        return is_any;
}

/* In which state it was for most of the time until it was found; TLOB_N_STATES: not known. */
static unsigned find_state(const Overrun *overrun) {
        unsigned most = 0;

        for (unsigned i = 0; i < TLOB_N_STATES; i++)
                if (overrun->spent_ns[i] == UINT64_MAX)
                        return TLOB_N_STATES;
                else if (overrun->spent_ns[i] > overrun->spent_ns[most])
                        most = i;
        return most;
}

/* Why it was over its budget, by what is the same for all that were for this reason. */
static char *describe_cause(sd_journal *journal, const Overrun *overrun) {
        uint64_t stolen_ns = journal_number(journal, "TLOB_STOLEN_NS");
        uint64_t probes_ns = journal_number(journal, "TLOB_PROBES_NS");
        char text[JOURNAL_TEXT_MAX], *bracket;

        if (overrun->budget == TLOB_BUDGET_MINIMUM)
                return strdup("over too soon, under its minimum");
        switch (find_state(overrun)) {
        case TLOB_RUNNING:
                if (stolen_ns != UINT64_MAX &&
                    violation_is_stolen(stolen_ns, overrun->spent_ns[TLOB_RUNNING]))
                        return strdup("waiting for a CPU that the hypervisor had");
                if (probes_ns != UINT64_MAX &&
                    violation_is_of_probes(probes_ns, overrun->spent_ns[TLOB_RUNNING]))
                        return strdup("running, slowed by " VIOLATION_PROBES);
                return strdup("running");
        case TLOB_WAITING:
                if (streq(journal_text(journal, "TLOB_PREEMPTED_BY", text), CAUSE_QUOTA))
                        return strdup("waiting for a " CAUSE_QUOTA);
                if (cause_is_quota_of_unit(text))
                        return sentence_make("waiting for the %s", text);
                bracket = strrchr(text, '[');
                if (bracket)
                        *bracket = '\0';
                return *text != '\0' ? sentence_make("waiting for a CPU that %s had", text)
                                     : strdup("waiting for a CPU");
        case TLOB_SLEEPING:
                (void) journal_text(journal, "TLOB_BLOCKED_IN", text);
                return *text != '\0' ? sentence_make("sleeping in %s", text) : strdup("sleeping");
        default:
                return strdup("not known");
        }
}

static char *describe_task(sd_journal *journal) {
        char comm[JOURNAL_TEXT_MAX], pid[JOURNAL_TEXT_MAX];

        (void) journal_text(journal, "TLOB_COMM", comm);
        (void) journal_text(journal, "TLOB_PID", pid);
        return *pid != '\0' ? sentence_make("%s[%s]", comm, pid) : strdup(comm);
}

static enum tlob_budget read_budget(sd_journal *journal) {
        char text[JOURNAL_TEXT_MAX];

        (void) journal_text(journal, "TLOB_BUDGET", text);
        return budget_from_string(text);
}

static Overrun read_overrun(sd_journal *journal, const JournalReport *read) {
        return (Overrun){
                .time_usec = read->time_usec,
                .id = read->id,
                .budget = read_budget(journal),
                .budget_ns = journal_number(journal, "TLOB_BUDGET_NS"),
                .length_ns = read->length_ns,
                .spent_ns = {
                        [TLOB_RUNNING] = journal_number(journal, "TLOB_RUNNING_NS"),
                        [TLOB_WAITING] = journal_number(journal, "TLOB_WAITING_NS"),
                        [TLOB_SLEEPING] = journal_number(journal, "TLOB_SLEEPING_NS"),
                },
        };
}

static int add_violation(Overruns *overruns, sd_journal *journal, const JournalReport *read) {
        _cleanup_free_ char *cause = NULL, *task = describe_task(journal);
        Overrun overrun = read_overrun(journal, read);

        if (read->is_repeated && overruns_has(overruns, read->id))
                return 0;
        cause = describe_cause(journal, &overrun);
        overrun.cause = cause;
        overrun.task = task;
        overrun.end = "its end was not reported";
        return cause && task ? overruns_add(overruns, &overrun) : -ENOMEM;
}

static void complete(Overruns *overruns, sd_journal *journal, const JournalReport *read) {
        Overrun end = read_overrun(journal, read);

        end.end = read->unseen;
        overruns_complete(overruns, &end);
}

static uint64_t number_lost(sd_journal *journal) {
        uint64_t lost = journal_number(journal, "TLOB_LOST"),
                 unwritten = journal_number(journal, "TLOB_UNWRITTEN");

        return (lost == UINT64_MAX ? 0 : lost) + (unwritten == UINT64_MAX ? 0 : unwritten);
}

static int add_entry(OverrunList *list, Wanted *wanted, sd_journal *journal,
                     const JournalReport *read) {
        char host[JOURNAL_TEXT_MAX], id[JOURNAL_TEXT_MAX];
        char binding[JOURNAL_TEXT_MAX], unit[JOURNAL_TEXT_MAX];
        const Machine machine = { .id = id, .host = host };
        Overruns *overruns;
        int r;

        (void) journal_text(journal, "_MACHINE_ID", id);
        (void) journal_text(journal, "_HOSTNAME", host);
        (void) journal_text(journal, "TLOB_BINDING", binding);
        (void) journal_text(journal, "TLOB_UNIT", unit);
        /* What is held back has the unit of its binding, and not those of tasks. */
        if (read->kind == KIND_SUPPRESSION) {
                overruns = overrun_list_find(list, &machine, binding);
                if (overruns)
                        return overruns_hold_back(overruns, read->time_usec, read->suppressed);
        }
        if (!is_wanted(wanted, binding, unit))
                return 0;
        r = overrun_list_get(list, &machine, binding, unit, &overruns);
        if (r < 0)
                return r;
        if (read->kind == KIND_VIOLATION)
                return add_violation(overruns, journal, read);
        if (read->kind == KIND_SUPPRESSION)
                return overruns_hold_back(overruns, read->time_usec, read->suppressed);
        complete(overruns, journal, read);
        return 0;
}

int report_read_entries(sd_journal *journal, uid_t writer, uint64_t since_usec, Wanted *wanted,
                        OverrunList *list, uint64_t *lost) {
        JournalReport read;
        int r;

        r = journal_select(journal, writer, (1U << N_REPORT_KINDS) - 1, NULL, NULL, since_usec);
        while (r >= 0 && (r = journal_next(journal, &read)) > 0)
                if (read.kind == KIND_LOSS || read.kind == KIND_UNWRITTEN)
                        *lost += number_lost(journal);
                else
                        r = add_entry(list, wanted, journal, &read);
        return r;
}
