/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_TRACE_EVENT_H
#define BASE_TRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Events of the kernel (tracepoints, probes that somebody has defined as events, and events that
 * programs have registered), as they are listed in /sys/kernel/tracing/available_events:
 * "block:block_rq_issue".
 */

/*
 * How a place that is an event is written: "event:block:block_rq_issue", or "user_event:request",
 * which is short for "event:user_events:request".
 */
#define TRACE_EVENT_PLACE      "event:"
#define TRACE_EVENT_USER_PLACE "user_event:"

/* The event, "GROUP:NAME", that a place is, or "user_event:NAME"; NULL: it is another place. */
const char *trace_event_of_place(const char *place);

/*
 * Could that be an event at which a window begins or ends? Returns 0, -EINVAL (it is no name of an
 * event) or -EOPNOTSUPP, and in *ret_why what is wrong, as the end of a sentence that begins with
 * the event; -ENOMEM.
 */
int trace_event_check(const char *event, char **ret_why);

typedef enum TraceEventKind {
        TRACE_EVENT_NONE,
        TRACE_EVENT_TRACEPOINT,
        TRACE_EVENT_PROBE, /* in a program */
        TRACE_EVENT_CALL_BEGIN,
        TRACE_EVENT_CALL_END,
        TRACE_EVENT_USER, /* a program has registered it, and writes it */
} TraceEventKind;

typedef struct TraceEvent {
        TraceEventKind kind;
        uint32_t id; /* by which this kernel knows it, until a reboot; or the number of the call */
} TraceEvent;

static inline bool trace_event_is_of_call(TraceEventKind kind) {
        return kind == TRACE_EVENT_CALL_BEGIN || kind == TRACE_EVENT_CALL_END;
}

/*
 * As above, and -ENOENT: this kernel has none of that name; -EAGAIN: it can have, when a program
 * has registered it, or tracefs is mounted; or another negative errno, if that cannot be read.
 */
int trace_event_find(const char *event, TraceEvent *ret, char **ret_why);

#endif
