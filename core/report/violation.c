/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What is said of a violation, and the log of the recent ones. The sentence is the MESSAGE= of the
 * journal and the text of "tlobctl monitor"; it is made here only, so that both say the same.
 *
 * Times in a sentence are rounded, all in the unit of the elapsed time, so that they can be
 * compared at a glance; the exact ones are in the fields beside it. What the back end does not know
 * is left out. The name of a task is chosen by that task, and may hold anything: it is escaped.
 */

#include "report/violation.h"

#include <inttypes.h>

#include "base/duration.h"
#include "base/sentence.h"
#include "base/unit-name.h"

#define BREAKDOWN_MAX ((TLOB_N_STATES + 2) * (DURATION_MAX + (size_t) 24))
#define MATTERS_PART  20 /* of the window */
#define CAUSE_MAX     (UNIT_NAME_MAX + 64)

void report_forget_states(Report *report) {
        report->state = TLOB_N_STATES;
        report->stolen_ns = report->probes_ns = 0;
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                report->spent_ns[i] = STATISTIC_UNKNOWN;
}

void violation_done(Violation *violation) {
        cause_done(&violation->cause);
        free(violation->comm);
        free(violation->executable);
        free(violation->unit);
        free(violation->binding);
        *violation = (Violation) {};
}

const char *tlob_state_to_string(enum tlob_state state) {
        static const char *const names[TLOB_N_STATES + 1] = {
                [TLOB_RUNNING] = "running",
                [TLOB_WAITING] = "waiting",
                [TLOB_SLEEPING] = "sleeping",
                [TLOB_N_STATES] = "unknown",
        };

        return names[state];
}

const char *tlob_end_to_string(enum tlob_end end) {
        static const char *const names[TLOB_N_ENDS] = {
                [TLOB_END_STOP] = "stop",       [TLOB_END_EXIT] = "exit",
                [TLOB_END_EXEC] = "exec",       [TLOB_END_ABANDONED] = "abandoned",
                [TLOB_END_REMOVED] = "removed", [TLOB_END_SWITCHED] = "switched",
        };

        return names[end];
}

const char *tlob_end_why_unseen(const char *end) {
        static const struct {
                enum tlob_end end;
                const char *why;
        } unseen[] = {
                { TLOB_END_ABANDONED, "nobody saw it end" },
                { TLOB_END_SWITCHED, "its goroutine left the thread" },
                { TLOB_END_REMOVED, "its probes were removed" },
        };

        for (size_t i = 0; i < ELEMENTSOF(unseen); i++)
                if (streq(tlob_end_to_string(unseen[i].end), end))
                        return unseen[i].why;
        return NULL;
}

/* " because ...", for a window that did not come to its stop. */
static const char *end_reason(enum tlob_end end, bool has_task) {
        static const char *const reasons[TLOB_N_ENDS] = {
                [TLOB_END_STOP] = "",
                [TLOB_END_EXIT] = " because the task exited",
                [TLOB_END_EXEC] = " because the task began another program",
                [TLOB_END_ABANDONED] = " because an exception, a longjmp() or the like left it",
                [TLOB_END_REMOVED] = " because its probes were removed",
                [TLOB_END_SWITCHED] = " because its goroutine left the thread",
        };

        if (!has_task && end == TLOB_END_EXIT)
                return " because the process exited";
        return reasons[end];
}

/* A part of the window, to be compared with the whole. */
static const char *format_part(const Report *report, uint64_t ns, char time[static DURATION_MAX]) {
        return duration_format_like(
                ns, report->elapsed_ns != STATISTIC_UNKNOWN ? report->elapsed_ns : ns, time);
}

/* A little is stolen all the time in most virtual machines, and a window has a probe or two. */
static bool matters(const Report *report, uint64_t ns) {
        return report->elapsed_ns != STATISTIC_UNKNOWN && ns > report->elapsed_ns / MATTERS_PART;
}

/* What of the time running was not the program's: " of which 5.1ms stolen" */
static size_t format_taken(const Report *report, char *buf, size_t size) {
        bool stolen = matters(report, report->stolen_ns),
             probes = matters(report, report->probes_ns);
        char time[DURATION_MAX];
        size_t n = 0;

        if (stolen)
                n += (size_t) snprintf(buf, size, " of which %s stolen",
                                       format_part(report, report->stolen_ns, time));
        if (probes)
                n += (size_t) snprintf(buf + n, size - n, "%s %s in probes",
                                       stolen ? " and" : " of which",
                                       format_part(report, report->probes_ns, time));
        return n;
}

/*
 * " (running 0.2ms, waiting 0.1ms, sleeping 4.7ms)", " (running 6.2ms of which 5.1ms stolen, ...)"
 */
static void format_breakdown(const Report *report, char buf[static BREAKDOWN_MAX]) {
        char time[DURATION_MAX];
        size_t n = 0;

        buf[0] = '\0';
        for (unsigned i = 0; i < TLOB_N_STATES; i++) {
                if (report->spent_ns[i] == STATISTIC_UNKNOWN)
                        continue;
                n += (size_t) snprintf(buf + n, BREAKDOWN_MAX - n, "%s%s %s", n == 0 ? " (" : ", ",
                                       tlob_state_to_string(i),
                                       format_part(report, report->spent_ns[i], time));
                if (i == TLOB_RUNNING)
                        n += format_taken(report, buf + n, BREAKDOWN_MAX - n);
        }
        if (n > 0)
                (void) snprintf(buf + n, BREAKDOWN_MAX - n, ")");
}

static bool is_minimum(const Report *report) {
        return report->budget == TLOB_BUDGET_MINIMUM;
}

static const char *direction(const Report *report) {
        return is_minimum(report) ? "under" : "over";
}

/* "5ms budget", "15ms sleeping budget", "2ms minimum" */
static void format_budget(const Violation *violation, char *buf, size_t size) {
        enum tlob_budget budget = violation->report.budget;
        bool total = budget == TLOB_BUDGET_TOTAL;
        char time[DURATION_MAX];

        (void) snprintf(buf, size, "%s%s%s%s", duration_format(violation->budget_ns, time),
                        total ? "" : " ", total ? "" : budget_to_string(budget),
                        is_minimum(&violation->report) ? "" : " budget");
}

static char *violation_sentence(const Violation *violation, const char *budget, const char *task,
                                const char *breakdown, const char *cause, const char *held_back) {
        const Report *report = &violation->report;
        char elapsed[DURATION_MAX];
        bool known = report->elapsed_ns != STATISTIC_UNKNOWN;

        return sentence_make("%s: %s its %s in %s%s%s%s%s%s%s", violation->binding,
                             direction(report), budget, task, known ? ": " : "",
                             known ? duration_format_short(report->elapsed_ns, elapsed) : "",
                             known && !is_minimum(report) ? " so far" : "", breakdown, cause,
                             held_back);
}

static char *completion_sentence(const Violation *violation, const char *budget, const char *task,
                                 const char *breakdown, const char *cause, const char *held_back) {
        char elapsed[DURATION_MAX], over[DURATION_MAX];
        const Report *report = &violation->report;
        bool known = report->elapsed_ns != STATISTIC_UNKNOWN;
        uint64_t overrun = budget_get_overrun(report->budget, violation->budget_ns,
                                              report->elapsed_ns, report->spent_ns);

        /* When it was left is not known where nobody saw it. */
        return sentence_make("%s: %s%s%s in %s%s, %s%s%s its %s%s%s%s", violation->binding,
                             report->end == TLOB_END_SWITCHED ? "out of sight" : "ended",
                             !known                              ? ""
                             : report->end == TLOB_END_ABANDONED ? " within "
                                                                 : " after ",
                             known ? duration_format_short(report->elapsed_ns, elapsed) : "", task,
                             end_reason(report->end, report->state < TLOB_N_STATES),
                             overrun > 0 ? duration_format_short(overrun, over) : "",
                             overrun > 0 ? " " : "", direction(report), budget, breakdown, cause,
                             held_back);
}

/* In which state the window has spent most of its time; TLOB_N_STATES: not known. */
static unsigned dominant_state(const Report *report) {
        unsigned most = 0;

        for (unsigned i = 0; i < TLOB_N_STATES; i++)
                if (report->spent_ns[i] == STATISTIC_UNKNOWN)
                        return TLOB_N_STATES;
                else if (report->spent_ns[i] > report->spent_ns[most])
                        most = i;
        return most;
}

/*
 * ", blocked in folio_wait_bit", ", woken by redis-server[812]": why it was in that state for so
 * long.
 */
static void format_cause(const Violation *violation, char buf[static CAUSE_MAX]) {
        const Cause *cause = &violation->cause;
        const char *words = NULL, *what = NULL;

        switch (dominant_state(&violation->report)) {
        case TLOB_RUNNING:
                if (violation_is_stolen(violation->report.stolen_ns,
                                        violation->report.spent_ns[TLOB_RUNNING])) {
                        words = "preempted by";
                        what = VIOLATION_HYPERVISOR;
                } else if (violation_is_of_probes(violation->report.probes_ns,
                                                  violation->report.spent_ns[TLOB_RUNNING])) {
                        words = "slowed by";
                        what = VIOLATION_PROBES;
                } else if (violation_has_waited(violation->report.spent_ns[TLOB_WAITING],
                                                violation->report.spent_ns[TLOB_RUNNING])) {
                        what = cause->preempted_by;
                        words = cause_words_for_peer(what);
                }
                break;
        case TLOB_WAITING:
                what = cause->preempted_by;
                words = cause_words_for_peer(what);
                break;
        case TLOB_SLEEPING:
                if (cause->blocked_in && *cause->blocked_in) {
                        words = cause_words_for(cause->blocked_in);
                        what = cause->blocked_in;
                } else {
                        words = "woken by";
                        what = cause->woken_by;
                }
                break;
        default:
                break;
        }
        if (what && *what)
                (void) snprintf(buf, CAUSE_MAX, ", %s %s", words, what);
        else
                buf[0] = '\0';
}

char *violation_to_sentence(const Violation *violation) {
        const Report *report = &violation->report;
        char comm[COMM_ESCAPED_MAX + 1];
        char budget[DURATION_MAX + 16], task[TASK_NAME_MAX], breakdown[BREAKDOWN_MAX],
                cause[CAUSE_MAX];
        char held_back[sizeof("; 18446744073709551615 reports before this one were held back")] =
                "";

        format_budget(violation, budget, sizeof(budget));
        /* The bytes of the name, if they are there; clients have it escaped. */
        if (report->comm[0])
                (void) snprintf(comm, sizeof(comm), "%.*s", TLOB_COMM_LEN, report->comm);
        else
                (void) snprintf(comm, sizeof(comm), "%s",
                                violation->comm && *violation->comm ? violation->comm : "a task");
        task_name_format(comm, report->pid, report->tid, task);
        format_breakdown(&violation->report, breakdown);
        format_cause(violation, cause);
        if (violation->suppressed > 0)
                (void) snprintf(held_back, sizeof(held_back),
                                "; %" PRIu64 " report%s before this one %s held back",
                                violation->suppressed, violation->suppressed == 1 ? "" : "s",
                                violation->suppressed == 1 ? "was" : "were");

        return violation->report.type == REPORT_COMPLETION
                       ? completion_sentence(violation, budget, task, breakdown, cause, held_back)
                       : violation_sentence(violation, budget, task, breakdown, cause, held_back);
}

static int violation_copy(const Violation *violation, Violation *ret) {
        _cleanup_(violation_done) Violation copy = *violation;
        int r;

        copy.binding = copy.unit = copy.comm = copy.executable = NULL;
        copy.cause = (Cause) {};
        r = free_and_strdup(&copy.binding, violation->binding);
        if (r < 0)
                return r;
        r = free_and_strdup(&copy.unit, violation->unit);
        if (r < 0)
                return r;
        r = free_and_strdup(&copy.comm, violation->comm);
        if (r < 0)
                return r;
        r = free_and_strdup(&copy.executable, violation->executable);
        if (r < 0)
                return r;
        r = cause_copy(&violation->cause, &copy.cause);
        if (r < 0)
                return r;

        *ret = copy;
        copy = (Violation) {};
        return 0;
}

int violation_log_init(ViolationLog *log, size_t size) {
        ViolationLog new_log = { .size = size };

        if (size > 0) {
                new_log.items = calloc(size, sizeof(*new_log.items));
                if (!new_log.items)
                        return -ENOMEM;
        }
        *log = new_log;
        return 0;
}

void violation_log_done(ViolationLog *log) {
        for (size_t i = 0; i < log->n; i++)
                violation_done(&log->items[(log->first + i) % log->size]);
        free(log->items);
        *log = (ViolationLog) {};
}

int violation_log_add(ViolationLog *log, const Violation *violation) {
        Violation copy, *item;
        int r;

        if (log->size == 0)
                return 0;
        r = violation_copy(violation, &copy);
        if (r < 0)
                return r;

        item = &log->items[(log->first + log->n) % log->size];
        if (log->n == log->size) {
                violation_done(item);
                log->first = (log->first + 1) % log->size;
        } else
                log->n++;
        *item = copy;
        return 0;
}

/* Of a moment: what was known at the violation stays. */
static void take_cause(char **what, char **from) {
        if (!*what)
                *what = TAKE_PTR(*from);
}

void violation_log_complete(ViolationLog *log, const Report *completion, Cause *cause) {
        Violation *item = (Violation *) violation_log_find(log, completion->id);

        if (!item)
                return;
        item->ended = true;
        item->took_ns = completion->elapsed_ns;
        memcpy(item->took_spent_ns, completion->spent_ns, sizeof(item->took_spent_ns));
        item->took_stolen_ns = completion->stolen_ns;
        item->took_probes_ns = completion->probes_ns;
        item->end = completion->end;
        take_cause(&item->cause.blocked_in, &cause->blocked_in);
        take_cause(&item->cause.woken_by, &cause->woken_by);
        /* Of all the time that the window waited, which is longer now. */
        if (cause->preempted_by) {
                free(item->cause.preempted_by);
                item->cause.preempted_by = TAKE_PTR(cause->preempted_by);
        }
}

const Violation *violation_log_get(const ViolationLog *log, size_t i) {
        if (i >= log->n)
                return NULL;
        return &log->items[(log->first + log->n - 1 - i) % log->size];
}

const Violation *violation_log_find(const ViolationLog *log, uint64_t id) {
        for (size_t i = 0; i < log->n; i++) {
                const Violation *violation = violation_log_get(log, i);

                if (violation->report.id == id)
                        return violation;
        }
        return NULL;
}
