/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Starts units for others, and tells how that went. */

#include "base/sentence.h"
#include "unit/internal.h"

/* In a list of the Units. */
struct UnitStart {
        Units *units;
        char *unit;
        char *job;          /* its path; NULL: systemd has not answered yet */
        bool is_unanswered; /* nor will it, but it may do what it was asked for */
        sd_bus_slot *slot;  /* of the call */
        UnitStart *next;
};

static UnitStart *start_free(UnitStart *start) {
        if (!start)
                return NULL;
        sd_bus_slot_unref(start->slot);
        free(start->job);
        free(start->unit);
        free(start);
        return NULL;
}
DEFINE_CLEANUP(UnitStart, start_free);

static void finish(UnitStart *start, const char *error) {
        UnitStart **p = &start->units->starts;
        _cleanup_(start_freep) UnitStart *ended = start;

        while (*p != start)
                p = &(*p)->next;
        *p = start->next;
        ended->units->handlers->started(ended->unit, error, ended->units->userdata);
}

static int on_started(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        const sd_bus_error *error = sd_bus_message_get_error(m);
        UnitStart *start = userdata;
        const char *job;

        /* It will do as it was asked, when it can: that has not ended. */
        if (error && sd_bus_error_get_errno(error) == ETIMEDOUT) {
                start->is_unanswered = true;
                return 0;
        }
        if (error) {
                finish(start, error->message ?: error->name);
                return 0;
        }
        if (sd_bus_message_read(m, "o", &job) < 0 || !(start->job = strdup(job)))
                finish(start, "The answer of systemd could not be read");
        return 0;
}

/* One job can be that of several, which have asked for the same unit. */
static UnitStart *find_start(const Units *units, const char *job, const char *unit) {
        for (UnitStart *start = units->starts; start; start = start->next)
                if (start->is_unanswered ? streq(start->unit, unit) : streq_empty(start->job, job))
                        return start;
        return NULL;
}

void unit_start_job_removed(Units *units, const char *job, const char *unit, const char *result) {
        /* A condition that is not met is what its author wants. */
        bool is_done = streq(result, "done") || streq(result, "skipped");
        _cleanup_free_ char *sentence = sentence_make("Its job ended with '%s'", result);
        UnitStart *start;

        while ((start = find_start(units, job, unit)))
                finish(start, is_done ? NULL : sentence ?: "Its job failed");
}

void unit_starts_forget(Units *units) {
        while (units->starts)
                finish(units->starts, NULL);
}

int units_start(Units *units, const char *unit) {
        _cleanup_(start_freep) UnitStart *start = NULL;
        int r;

        if (!units->bus)
                return -ENOTCONN;
        start = calloc(1, sizeof(*start));
        if (!start)
                return -ENOMEM;
        start->units = units;
        start->unit = strdup(unit);
        if (!start->unit)
                return -ENOMEM;
        /* "fail": it takes the place of no other job, such as those of a shutdown. */
        r = sd_bus_call_method_async(units->bus, &start->slot, SYSTEMD_NAME, SYSTEMD_PATH,
                                     SYSTEMD_MANAGER, "StartUnit", on_started, start, "ss", unit,
                                     "fail");
        if (r < 0)
                return r;
        start->next = units->starts;
        units->starts = TAKE_PTR(start);
        return 0;
}

void unit_starts_done(Units *units) {
        while (units->starts) {
                UnitStart *start = units->starts;

                units->starts = start->next;
                start_free(start);
        }
}
