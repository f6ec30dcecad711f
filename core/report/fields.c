/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/fields.h"

#include <inttypes.h>
#include <stdarg.h>

void fields_done(Fields *fields) {
        for (size_t i = 0; i < fields->n; i++)
                free(fields->items[i].iov_base);
}

void fields_add(Fields *fields, const char *format, ...) {
        va_list ap;
        char *p;
        int n;

        if (fields->n == FIELDS_MAX) {
                fields->error = -E2BIG;
                return;
        }

        va_start(ap, format);
        n = vasprintf(&p, format, ap);
        va_end(ap);
        if (n < 0) {
                fields->error = -ENOMEM;
                return;
        }
        fields->items[fields->n++] = (struct iovec) { .iov_base = p, .iov_len = (size_t) n };
}

/* A field that is not there says that nobody knows. */
static void add_time(Fields *fields, const char *name, uint64_t ns) {
        if (ns != STATISTIC_UNKNOWN)
                fields_add(fields, "%s%" PRIu64, name, ns);
}

static void add_times(Fields *fields, const Violation *v) {
        const Report *report = &v->report;

        fields_add(fields, "TLOB_TIME_NS=%" PRIu64, report->time_ns);
        fields_add(fields, "TLOB_BUDGET=%s", budget_to_string(report->budget));
        fields_add(fields, "TLOB_BUDGET_NS=%" PRIu64, v->budget_ns);
        add_time(fields, "TLOB_ELAPSED_NS=", report->elapsed_ns);
        add_time(fields, "TLOB_RUNNING_NS=", report->spent_ns[TLOB_RUNNING]);
        if (report->stolen_ns > 0)
                add_time(fields, "TLOB_STOLEN_NS=", report->stolen_ns);
        if (report->probes_ns > 0)
                add_time(fields, "TLOB_PROBES_NS=", report->probes_ns);
        add_time(fields, "TLOB_WAITING_NS=", report->spent_ns[TLOB_WAITING]);
        add_time(fields, "TLOB_SLEEPING_NS=", report->spent_ns[TLOB_SLEEPING]);
        fields_add(fields, "TLOB_STATE=%s", tlob_state_to_string(report->state));
        if (report->type == REPORT_COMPLETION)
                fields_add(fields, "TLOB_END=%s", tlob_end_to_string(report->end));
        else if (report->late_ns != STATISTIC_UNKNOWN)
                fields_add(fields, "TLOB_LATE_NS=%" PRIu64, report->late_ns);
}

static void add_task(Fields *fields, const Violation *v) {
        const Report *report = &v->report;

        if (report->tid)
                fields_add(fields, "TLOB_TID=%" PRIu32, report->tid);
        if (report->pid)
                fields_add(fields, "TLOB_PID=%" PRIu32, report->pid);
        if (v->comm)
                fields_add(fields, "TLOB_COMM=%s", v->comm);
        if (v->executable)
                fields_add(fields, "TLOB_EXECUTABLE=%s", v->executable);
        if (v->unit && *v->unit)
                fields_add(fields, "TLOB_UNIT=%s", v->unit);
}

static void add_cause(Fields *fields, const Cause *cause) {
        if (cause->blocked_in)
                fields_add(fields, "TLOB_BLOCKED_IN=%s", cause->blocked_in);
        if (cause->woken_by)
                fields_add(fields, "TLOB_WOKEN_BY=%s", cause->woken_by);
        if (cause->preempted_by)
                fields_add(fields, "TLOB_PREEMPTED_BY=%s", cause->preempted_by);
}

void fields_add_violation(Fields *fields, const Violation *v) {
        fields_add(fields, "TLOB_BINDING=%s", v->binding);
        fields_add(fields, "TLOB_WINDOW_ID=%" PRIu64, v->report.id);
        fields_add(fields, "TLOB_BACKEND=%s", v->backend);
        add_times(fields, v);
        add_task(fields, v);
        add_cause(fields, &v->cause);
        if (v->report.is_repeated)
                fields_add(fields, "TLOB_REPEATED=1");
        if (v->suppressed > 0)
                fields_add(fields, "TLOB_SUPPRESSED=%" PRIu64, v->suppressed);
}

/* In double quotes, as systemd.exec(5) has it under EnvironmentFile=. */
static void write_quoted(FILE *f, const char *field) {
        size_t n = strcspn(field, "=") + 1;

        fwrite(field, 1, n, f);
        putc('"', f);
        for (const char *p = field + n; *p != '\0'; p++) {
                if (strchr("\"\\`$", *p))
                        putc('\\', f);
                putc(*p, f);
        }
        fputs("\"\n", f);
}

char *violation_to_environment(const Violation *v) {
        _cleanup_(fields_done) Fields fields = {};
        _cleanup_free_ char *sentence = NULL;
        char *text = NULL;
        size_t size = 0;
        FILE *f;

        sentence = violation_to_sentence(v);
        if (!sentence)
                return NULL;
        fields_add(&fields, "TLOB_MESSAGE=%s", sentence);
        fields_add_violation(&fields, v);
        f = fields.error >= 0 ? open_memstream(&text, &size) : NULL;
        if (!f)
                return NULL;
        for (size_t i = 0; i < fields.n; i++)
                write_quoted(f, fields.items[i].iov_base);
        if (fclose(f) != 0) {
                free(text);
                return NULL;
        }
        return text;
}
