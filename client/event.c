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

char *event_format_time(const json_object *event, bool local, bool brief,
                        char buf[static EVENT_TIME_MAX]) {
        uint64_t time_ns = json_number(event, "time_ns"), now = now_ns(), real_ns;
        struct tm tm, today;
        time_t seconds, this_second;
        bool is_today;

        if (time_ns == UINT64_MAX)
                return strcpy(buf, "-");
        if (!local) {
                (void) snprintf(buf, EVENT_TIME_MAX, "[%" PRIu64 ".%06" PRIu64 "]",
                                time_ns / NSEC_PER_SEC, time_ns % NSEC_PER_SEC / NSEC_PER_USEC);
                return buf;
        }

        real_ns = clock_read_ns(CLOCK_REALTIME);
        this_second = (time_t) (real_ns / NSEC_PER_SEC);
        real_ns -= now > time_ns ? now - time_ns : 0;
        seconds = (time_t) (real_ns / NSEC_PER_SEC);
        if (!localtime_r(&seconds, &tm) || !localtime_r(&this_second, &today))
                return strcpy(buf, "-");
        is_today = tm.tm_yday == today.tm_yday && tm.tm_year == today.tm_year;
        if (strftime(buf, EVENT_TIME_MAX, brief && is_today ? "%H:%M:%S" : "%b %d %H:%M:%S", &tm) ==
            0)
                return strcpy(buf, "-");
        return buf;
}
