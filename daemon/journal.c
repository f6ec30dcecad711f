/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What tlobd has to say about others goes to the journal here, with SYSLOG_IDENTIFIER=tlob; what it
 * has to say about itself goes through log.c. Nothing is formatted for people here but MESSAGE=,
 * and nothing is held back: the manager decides what is sent.
 *
 * OBJECT_PID= and OBJECT_SYSTEMD_UNIT= make "journalctl -u" show an entry beside the unit's own
 * lines. journald takes them from uid 0 only.
 */

#include "journal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <sys/uio.h>
#include <syslog.h>

#include "base/duration.h"
#include "journal-socket.h"
#include "tlob-messages.h"

#define FIELDS_MAX 40

/* The fields of one entry; the strings are owned. */
typedef struct Entry {
        struct iovec fields[FIELDS_MAX];
        size_t n;
        int error; /* the first one: adding goes on as if nothing was */
} Entry;

static void entry_done(Entry *entry) {
        for (size_t i = 0; i < entry->n; i++)
                free(entry->fields[i].iov_base);
}

static void entry_add(Entry *entry, const char *format, ...) _printf_(2, 3);

static void entry_add(Entry *entry, const char *format, ...) {
        va_list ap;
        char *p;
        int n;

        if (entry->n == FIELDS_MAX) {
                entry->error = -E2BIG;
                return;
        }

        va_start(ap, format);
        n = vasprintf(&p, format, ap);
        va_end(ap);
        if (n < 0) {
                entry->error = -ENOMEM;
                return;
        }
        entry->fields[entry->n++] = (struct iovec){ .iov_base = p, .iov_len = (size_t) n };
}

static void entry_begin(Entry *entry, const char *message_id, int priority) {
        entry_add(entry, "MESSAGE_ID=%s", message_id);
        entry_add(entry, "PRIORITY=%i", priority);
        entry_add(entry, "SYSLOG_IDENTIFIER=tlob");
        entry_add(entry, "DOCUMENTATION=man:tlobd(8)");
}

static void entry_add_unit(Entry *entry, const char *unit) {
        if (!unit || !*unit)
                return;
        entry_add(entry, "TLOB_UNIT=%s", unit);
        entry_add(entry, "OBJECT_SYSTEMD_UNIT=%s", unit);
}

static int entry_send(Entry *entry) {
        if (entry->error < 0)
                return entry->error;
        return journal_socket_send(entry->fields, entry->n);
}

/* A field that is not there says that nobody knows. */
static void entry_add_time(Entry *entry, const char *name, uint64_t ns) {
        if (ns != STATISTIC_UNKNOWN)
                entry_add(entry, "%s%" PRIu64, name, ns);
}

/* For the texts of the catalog, which can only copy fields: always there. */
static void entry_add_text(Entry *entry, const char *name, uint64_t ns) {
        char text[DURATION_MAX];

        entry_add(entry, "%s%s", name,
                  ns != STATISTIC_UNKNOWN ? duration_format_short(ns, text) : "unknown");
}

static void entry_add_texts(Entry *entry, const Violation *v) {
        const Report *report = &v->report;
        char budget[DURATION_MAX];

        entry_add(entry, "TLOB_BUDGET_TEXT=%s", duration_format(v->budget_ns, budget));
        entry_add_text(entry, "TLOB_ELAPSED_TEXT=", report->elapsed_ns);
        entry_add_text(entry, "TLOB_RUNNING_TEXT=", report->spent_ns[TLOB_RUNNING]);
        entry_add_text(entry, "TLOB_WAITING_TEXT=", report->spent_ns[TLOB_WAITING]);
        entry_add_text(entry, "TLOB_SLEEPING_TEXT=", report->spent_ns[TLOB_SLEEPING]);
}

static void entry_add_times(Entry *entry, const Violation *v) {
        const Report *report = &v->report;

        entry_add(entry, "TLOB_TIME_NS=%" PRIu64, report->time_ns);
        entry_add(entry, "TLOB_BUDGET=%s", budget_to_string(report->budget));
        entry_add(entry, "TLOB_BUDGET_NS=%" PRIu64, v->budget_ns);
        entry_add_time(entry, "TLOB_ELAPSED_NS=", report->elapsed_ns);
        entry_add_time(entry, "TLOB_RUNNING_NS=", report->spent_ns[TLOB_RUNNING]);
        if (report->stolen_ns > 0)
                entry_add_time(entry, "TLOB_STOLEN_NS=", report->stolen_ns);
        entry_add_time(entry, "TLOB_WAITING_NS=", report->spent_ns[TLOB_WAITING]);
        entry_add_time(entry, "TLOB_SLEEPING_NS=", report->spent_ns[TLOB_SLEEPING]);
        entry_add(entry, "TLOB_STATE=%s", tlob_state_to_string(report->state));
        if (report->type == REPORT_COMPLETION)
                entry_add(entry, "TLOB_END=%s", tlob_end_to_string(report->end));
        else if (report->late_ns != STATISTIC_UNKNOWN)
                entry_add(entry, "TLOB_LATE_NS=%" PRIu64, report->late_ns);
}

static void entry_add_cause(Entry *entry, const Cause *cause) {
        if (cause->blocked_in)
                entry_add(entry, "TLOB_BLOCKED_IN=%s", cause->blocked_in);
        if (cause->woken_by)
                entry_add(entry, "TLOB_WOKEN_BY=%s", cause->woken_by);
        if (cause->preempted_by)
                entry_add(entry, "TLOB_PREEMPTED_BY=%s", cause->preempted_by);
}

static void entry_add_task(Entry *entry, const Violation *v) {
        const Report *report = &v->report;

        if (report->tid)
                entry_add(entry, "TLOB_TID=%" PRIu32, report->tid);
        if (report->pid) {
                entry_add(entry, "TLOB_PID=%" PRIu32, report->pid);
                entry_add(entry, "OBJECT_PID=%" PRIu32, report->pid);
        }
        if (v->comm)
                entry_add(entry, "TLOB_COMM=%s", v->comm);
        if (v->executable)
                entry_add(entry, "TLOB_EXECUTABLE=%s", v->executable);
        entry_add_unit(entry, v->unit);
}

int journal_report(const Violation *v) {
        _cleanup_(entry_done) Entry entry = {};
        _cleanup_free_ char *sentence = NULL;
        bool completion = v->report.type == REPORT_COMPLETION;

        sentence = violation_to_sentence(v);
        if (!sentence)
                return -ENOMEM;

        entry_begin(&entry, completion ? TLOB_MESSAGE_COMPLETION_STR : TLOB_MESSAGE_VIOLATION_STR,
                    v->priority);
        entry_add(&entry, "MESSAGE=%s", sentence);
        entry_add(&entry, "TLOB_BINDING=%s", v->binding);
        entry_add(&entry, "TLOB_WINDOW_ID=%" PRIu64, v->report.id);
        entry_add(&entry, "TLOB_BACKEND=%s", v->backend);
        entry_add_times(&entry, v);
        entry_add_texts(&entry, v);
        entry_add_task(&entry, v);
        entry_add_cause(&entry, &v->cause);
        if (v->suppressed > 0)
                entry_add(&entry, "TLOB_SUPPRESSED=%" PRIu64, v->suppressed);
        return entry_send(&entry);
}

int journal_suppression(const Binding *binding, uint64_t n) {
        _cleanup_(entry_done) Entry entry = {};

        entry_begin(&entry, TLOB_MESSAGE_SUPPRESSION_STR, LOG_NOTICE);
        entry_add(&entry, "MESSAGE=%s: %" PRIu64 " reports held back by the rate limit",
                  binding->name, n);
        entry_add(&entry, "TLOB_BINDING=%s", binding->name);
        entry_add(&entry, "TLOB_SUPPRESSED=%" PRIu64, n);
        entry_add_unit(&entry, binding->unit);
        return entry_send(&entry);
}

int journal_loss(uint64_t n) {
        _cleanup_(entry_done) Entry entry = {};

        entry_begin(&entry, TLOB_MESSAGE_LOSS_STR, LOG_WARNING);
        entry_add(&entry,
                  "MESSAGE=%" PRIu64 " reports were lost because the buffer was full; their "
                  "violations are counted. Raise RingBufferSize= in tlobd.conf.",
                  n);
        entry_add(&entry, "TLOB_LOST=%" PRIu64, n);
        return entry_send(&entry);
}

int journal_unwritten(uint64_t n) {
        _cleanup_(entry_done) Entry entry = {};

        entry_begin(&entry, TLOB_MESSAGE_UNWRITTEN_STR, LOG_WARNING);
        entry_add(&entry,
                  "MESSAGE=%" PRIu64 " entries were lost because the journal accepted none for "
                  "some time; their violations are counted, and were sent as signals.",
                  n);
        entry_add(&entry, "TLOB_UNWRITTEN=%" PRIu64, n);
        return entry_send(&entry);
}

int journal_binding_failure(const Binding *binding) {
        _cleanup_(entry_done) Entry entry = {};

        entry_begin(&entry, TLOB_MESSAGE_BINDING_FAILURE_STR,
                    binding->required ? LOG_ERR : LOG_WARNING);
        entry_add(&entry, "MESSAGE=%s: not measured: %s", binding->name,
                  binding->measurement.reason ?: "");
        entry_add(&entry, "TLOB_BINDING=%s", binding->name);
        entry_add_unit(&entry, binding->unit);
        return entry_send(&entry);
}

int journal_binding_recovery(const Binding *binding) {
        _cleanup_(entry_done) Entry entry = {};

        entry_begin(&entry, TLOB_MESSAGE_BINDING_RECOVERY_STR, LOG_INFO);
        entry_add(&entry, "MESSAGE=%s: measured now", binding->name);
        entry_add(&entry, "TLOB_BINDING=%s", binding->name);
        entry_add_unit(&entry, binding->unit);
        return entry_send(&entry);
}

int journal_worse_build(const Binding *binding, const BuildComparison *comparison) {
        const char *id = binding->resolved.build_id ?: "";
        char before[DURATION_MAX], now[DURATION_MAX];
        _cleanup_(entry_done) Entry entry = {};

        entry_begin(&entry, TLOB_MESSAGE_WORSE_BUILD_STR, LOG_WARNING);
        entry_add(&entry,
                  "MESSAGE=%s: p99 %s -> %s since build %.12s (%" PRIu64 " windows; before: %.12s)",
                  binding->name, duration_format_short(comparison->before_ns, before),
                  duration_format_short(comparison->now_ns, now), id, comparison->n_windows,
                  comparison->before_id);
        entry_add(&entry, "TLOB_BINDING=%s", binding->name);
        entry_add(&entry, "TLOB_BUILD_ID=%s", id);
        entry_add(&entry, "TLOB_BUILD_ID_BEFORE=%s", comparison->before_id);
        entry_add(&entry, "TLOB_P99_NS=%" PRIu64, comparison->now_ns);
        entry_add(&entry, "TLOB_P99_NS_BEFORE=%" PRIu64, comparison->before_ns);
        entry_add_unit(&entry, binding->unit);
        return entry_send(&entry);
}
