/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Violations and completions as D-Bus tells them, turned back into the daemon's own structure, so
 * that its sentence (violation.c) is the same here, in the journal, and on any screen. Only what
 * the sentence says is filled in. A word that is not known, from a newer daemon, counts as the
 * first of its kind.
 */

#include "event.h"

#include <inttypes.h>
#include <time.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/duration.h"
#include "binding/binding.h"
#include "bus-json.h"

const char *const event_arguments[] = {
        "binding",    "unit",       "tid",         "budget_ns", "elapsed_ns",
        "running_ns", "waiting_ns", "sleeping_ns", "",          NULL,
};

static enum tlob_state state_from_string(const char *s) {
        for (unsigned i = 0; i < TLOB_N_STATES; i++)
                if (streq(s, tlob_state_to_string(i)))
                        return i;
        return TLOB_RUNNING;
}

static enum tlob_end end_from_string(const char *s) {
        for (unsigned i = 0; i < TLOB_N_ENDS; i++)
                if (streq(s, tlob_end_to_string(i)))
                        return i;
        return TLOB_END_STOP;
}

/* An id of a task: 0 if it is not known. */
static uint32_t task_id(const json_object *event, const char *key) {
        uint64_t id = json_number(event, key);

        return id > UINT32_MAX ? 0 : (uint32_t) id;
}

/* What is left out where there is nothing. */
static uint64_t amount(const json_object *event, const char *key) {
        uint64_t n = json_number(event, key);

        return n == UINT64_MAX ? 0 : n;
}

char *event_to_sentence(const json_object *event, ReportType type) {
        Violation violation = {
                .report = {
                        .type = type,
                        .elapsed_ns = json_number(event, "elapsed_ns"),
                        .spent_ns = {
                                [TLOB_RUNNING] = json_number(event, "running_ns"),
                                [TLOB_WAITING] = json_number(event, "waiting_ns"),
                                [TLOB_SLEEPING] = json_number(event, "sleeping_ns"),
                        },
                        .stolen_ns = amount(event, "stolen_ns"),
                        .probes_ns = amount(event, "probes_ns"),
                        .budget = budget_from_string(json_string(event, "budget")),
                        .state = state_from_string(json_string(event, "state")),
                        .end = end_from_string(json_string(event, "end")),
                        .tid = task_id(event, "tid"),
                        .pid = task_id(event, "pid"),
                },
                .binding = (char *) json_string(event, "binding"),
                .unit = (char *) json_string(event, "unit"),
                .comm = (char *) json_string(event, "comm"),
                .cause = {
                        .blocked_in = (char *) json_string(event, "blocked_in"),
                        .woken_by = (char *) json_string(event, "woken_by"),
                        .preempted_by = (char *) json_string(event, "preempted_by"),
                },
                .budget_ns = json_number(event, "budget_ns"),
                .suppressed = amount(event, "suppressed"),
        };

        return violation_to_sentence(&violation);
}

char *event_format_time(const json_object *event, bool brief, char buf[static EVENT_TIME_MAX]) {
        uint64_t time_ns = json_number(event, "time_ns");
        uint64_t realtime_ns = json_number(event, "realtime_ns");
        time_t seconds = (time_t) (realtime_ns / NSEC_PER_SEC);
        time_t now = (time_t) (clock_read_ns(CLOCK_REALTIME) / NSEC_PER_SEC);
        struct tm tm, today;
        bool is_today;

        if (realtime_ns == UINT64_MAX && time_ns != UINT64_MAX) {
                (void) snprintf(buf, EVENT_TIME_MAX, "[%" PRIu64 ".%06" PRIu64 "]",
                                time_ns / NSEC_PER_SEC, time_ns % NSEC_PER_SEC / NSEC_PER_USEC);
                return buf;
        }
        if (realtime_ns == UINT64_MAX || !localtime_r(&seconds, &tm) || !localtime_r(&now, &today))
                return strcpy(buf, "-");
        is_today = tm.tm_yday == today.tm_yday && tm.tm_year == today.tm_year;
        if (strftime(buf, EVENT_TIME_MAX, brief && is_today ? "%H:%M:%S" : "%b %d %H:%M:%S", &tm) ==
            0)
                return strcpy(buf, "-");
        return buf;
}
