/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef EVENT_H
#define EVENT_H

#include <json-c/json.h>
#include <stdbool.h>

#include "report/violation.h"

/*
 * A violation or completion, as D-Bus tells it: an object of the arguments of the signal and its
 * details.
 */

/* The arguments of the signals, for bus_json_read_members(). */
extern const char *const event_arguments[];

/* The daemon's own sentence on it. Owned by the caller; NULL for want of memory. */
char *event_to_sentence(const json_object *event, ReportType type);

#define EVENT_TIME_MAX 64

/*
 * When it was found, by the clock of that machine, and in our time zone; of an older daemon, which
 * does not tell: the seconds since the machine's boot. Brief is without the date, if that is today.
 * Returns buf.
 */
char *event_format_time(const json_object *event, bool brief, char buf[static EVENT_TIME_MAX]);

#endif
