/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What tlobd has to say about others goes to the journal here, with SYSLOG_IDENTIFIER=tlob; what it
 * has to say about itself goes through log.c. Nothing is formatted for people here but MESSAGE=,
 * and nothing is held back: the manager decides what is sent.
 *
 * OBJECT_PID= and OBJECT_SYSTEMD_UNIT= make "journalctl -u" show an entry beside the unit's own
 * lines. journald takes them from uid 0 only. For a user's own unit, "journalctl --user -u" shows
 * what any process of that user says with USER_UNIT=.
 */

#include "journal.h"

#include <inttypes.h>
#include <syslog.h>

#include "base/duration.h"
#include "base/sentence.h"
#include "journal-socket.h"
#include "report/fields.h"
#include "tlob-messages.h"

static RuntimeScope runtime_scope = RUNTIME_SCOPE_SYSTEM;

void journal_set_scope(RuntimeScope scope) {
        runtime_scope = scope;
}

static void begin(Fields *fields, const char *message_id, int priority) {
        fields_add(fields, "MESSAGE_ID=%s", message_id);
        fields_add(fields, "PRIORITY=%i", priority);
        fields_add(fields, "SYSLOG_IDENTIFIER=tlob");
        fields_add(fields, "DOCUMENTATION=man:tlobd(8)");
}

/* About which unit, and if it is known, which of its processes. */
static void add_object(Fields *fields, const char *unit, uint32_t pid) {
        if (unit && *unit)
                fields_add(fields, "%s=%s",
                           runtime_scope == RUNTIME_SCOPE_USER ? "USER_UNIT"
                                                               : "OBJECT_SYSTEMD_UNIT",
                           unit);
        if (pid > 0 && runtime_scope == RUNTIME_SCOPE_SYSTEM)
                fields_add(fields, "OBJECT_PID=%" PRIu32, pid);
}

static void add_unit(Fields *fields, const char *unit) {
        if (!unit || !*unit)
                return;
        fields_add(fields, "TLOB_UNIT=%s", unit);
        add_object(fields, unit, 0);
}

static int send_entry(Fields *fields) {
        if (fields->error < 0)
                return fields->error;
        return journal_socket_send(fields->items, fields->n);
}

/* For the texts of the catalog, which can only copy fields: always there. */
static void add_text(Fields *fields, const char *name, uint64_t ns) {
        char text[DURATION_MAX];

        fields_add(fields, "%s%s", name,
                   ns != STATISTIC_UNKNOWN ? duration_format_short(ns, text) : "unknown");
}

static void add_texts(Fields *fields, const Violation *v) {
        const Report *report = &v->report;
        char budget[DURATION_MAX];

        fields_add(fields, "TLOB_BUDGET_TEXT=%s", duration_format(v->budget_ns, budget));
        add_text(fields, "TLOB_ELAPSED_TEXT=", report->elapsed_ns);
        add_text(fields, "TLOB_RUNNING_TEXT=", report->spent_ns[TLOB_RUNNING]);
        add_text(fields, "TLOB_WAITING_TEXT=", report->spent_ns[TLOB_WAITING]);
        add_text(fields, "TLOB_SLEEPING_TEXT=", report->spent_ns[TLOB_SLEEPING]);
}

int journal_report(const Violation *v) {
        _cleanup_(fields_done) Fields fields = {};
        _cleanup_free_ char *sentence = NULL;
        bool completion = v->report.type == REPORT_COMPLETION;

        sentence = violation_to_sentence(v);
        if (!sentence)
                return -ENOMEM;

        begin(&fields, completion ? TLOB_MESSAGE_COMPLETION_STR : TLOB_MESSAGE_VIOLATION_STR,
              v->priority);
        fields_add(&fields, "MESSAGE=%s", sentence);
        fields_add_violation(&fields, v);
        add_texts(&fields, v);
        add_object(&fields, v->unit, v->report.pid);
        return send_entry(&fields);
}

int journal_suppression(const Binding *binding, uint64_t n) {
        _cleanup_(fields_done) Fields fields = {};

        begin(&fields, TLOB_MESSAGE_SUPPRESSION_STR, LOG_NOTICE);
        fields_add(&fields, "MESSAGE=%s: %" PRIu64 " reports held back by the rate limit",
                   binding->name, n);
        fields_add(&fields, "TLOB_BINDING=%s", binding->name);
        fields_add(&fields, "TLOB_SUPPRESSED=%" PRIu64, n);
        add_unit(&fields, binding_unit_name(binding));
        return send_entry(&fields);
}

int journal_loss(uint64_t n) {
        _cleanup_(fields_done) Fields fields = {};

        begin(&fields, TLOB_MESSAGE_LOSS_STR, LOG_WARNING);
        fields_add(&fields,
                   "MESSAGE=%" PRIu64 " %s lost because the buffer was full; their "
                   "violations are counted. Raise RingBufferSize= in tlobd.conf.",
                   n, n == 1 ? "report was" : "reports were");
        fields_add(&fields, "TLOB_LOST=%" PRIu64, n);
        return send_entry(&fields);
}

int journal_unwritten(uint64_t n) {
        _cleanup_(fields_done) Fields fields = {};

        begin(&fields, TLOB_MESSAGE_UNWRITTEN_STR, LOG_WARNING);
        fields_add(&fields,
                   "MESSAGE=%" PRIu64 " %s lost because the journal accepted none for "
                   "some time; their violations are counted, and were sent as signals.",
                   n, n == 1 ? "entry was" : "entries were");
        fields_add(&fields, "TLOB_UNWRITTEN=%" PRIu64, n);
        return send_entry(&fields);
}

int journal_binding_failure(const Binding *binding) {
        _cleanup_(fields_done) Fields fields = {};

        begin(&fields, TLOB_MESSAGE_BINDING_FAILURE_STR, binding->required ? LOG_ERR : LOG_WARNING);
        fields_add(&fields, "MESSAGE=%s: not measured: %s", binding->name,
                   binding->measurement.reason ?: "");
        fields_add(&fields, "TLOB_BINDING=%s", binding->name);
        add_unit(&fields, binding_unit_name(binding));
        return send_entry(&fields);
}

int journal_binding_recovery(const Binding *binding) {
        _cleanup_(fields_done) Fields fields = {};

        begin(&fields, TLOB_MESSAGE_BINDING_RECOVERY_STR, LOG_INFO);
        fields_add(&fields, "MESSAGE=%s: measured now", binding->name);
        fields_add(&fields, "TLOB_BINDING=%s", binding->name);
        add_unit(&fields, binding_unit_name(binding));
        return send_entry(&fields);
}

/* "broken", "kept again", with figures; and what is no longer configured has neither. */
static char *describe_tolerance(const Binding *binding, double rate) {
        const ToleranceTrack *track = binding->tolerance_state.track;
        _cleanup_free_ char *text = NULL;

        if (binding->tolerance.allowed == 0)
                return sentence_make("%s: tolerance no longer judged", binding->name);
        text = tolerance_describe(track->violations, track->windows, binding->tolerance_window_ns,
                                  binding->tolerance_text ?: "", rate);
        if (!text)
                return NULL;
        return sentence_make("%s: tolerance %s: %s", binding->name,
                             track->is_broken ? "broken" : "kept again", text);
}

int journal_tolerance(const Binding *binding) {
        const ToleranceTrack *track = binding->tolerance_state.track;
        double rate = tolerance_burn_rate(track, &binding->tolerance);
        const char *state = binding_tolerance_state(binding);
        bool is_broken = streq(state, "broken");
        _cleanup_(fields_done) Fields fields = {};
        _cleanup_free_ char *text = describe_tolerance(binding, rate);

        if (!text)
                return -ENOMEM;
        begin(&fields,
              is_broken ? TLOB_MESSAGE_TOLERANCE_BROKEN_STR : TLOB_MESSAGE_TOLERANCE_KEPT_STR,
              is_broken ? binding->priority : LOG_INFO);
        fields_add(&fields, "MESSAGE=%s", text);
        fields_add(&fields, "TLOB_BINDING=%s", binding->name);
        fields_add(&fields, "TLOB_TOLERANCE=%s", binding->tolerance_text ?: "");
        fields_add(&fields, "TLOB_TOLERANCE_WINDOW_NS=%" PRIu64, binding->tolerance_window_ns);
        fields_add(&fields, "TLOB_TOLERANCE_STATE=%s", state);
        fields_add(&fields, "TLOB_WINDOWS=%" PRIu64, track->windows);
        fields_add(&fields, "TLOB_VIOLATIONS=%" PRIu64, track->violations);
        fields_add(&fields, "TLOB_BURN_RATE=%.3f", rate);
        add_unit(&fields, binding_unit_name(binding));
        return send_entry(&fields);
}

int journal_worse_build(const Binding *binding, const BuildComparison *comparison) {
        const char *id = binding->resolved.build_id ?: "";
        char before[DURATION_MAX], now[DURATION_MAX];
        _cleanup_(fields_done) Fields fields = {};

        begin(&fields, TLOB_MESSAGE_WORSE_BUILD_STR, LOG_WARNING);
        fields_add(&fields,
                   "MESSAGE=%s: p99 %s -> %s since build %.12s (%" PRIu64
                   " windows; before: %.12s)",
                   binding->name, duration_format_short(comparison->before_ns, before),
                   duration_format_short(comparison->now_ns, now), id, comparison->n_windows,
                   comparison->before_id);
        fields_add(&fields, "TLOB_BINDING=%s", binding->name);
        fields_add(&fields, "TLOB_BUILD_ID=%s", id);
        fields_add(&fields, "TLOB_BUILD_ID_BEFORE=%s", comparison->before_id);
        fields_add(&fields, "TLOB_P99_NS=%" PRIu64, comparison->now_ns);
        fields_add(&fields, "TLOB_P99_NS_BEFORE=%" PRIu64, comparison->before_ns);
        add_unit(&fields, binding_unit_name(binding));
        return send_entry(&fields);
}
