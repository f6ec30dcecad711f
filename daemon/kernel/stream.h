/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_STREAM_H
#define KERNEL_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "kernel/event.h"
#include "kernel/tracing.h"

/* The violations that the monitor reports, from a trace instance of our own. */
typedef struct KernelStream KernelStream;

typedef struct KernelStreamCounters {
        uint64_t lost; /* events that the buffers had no room for */
        uint64_t unpaired;
        uint64_t lone;
        uint64_t aborted;
        uint64_t cut;     /* windows in which they were */
        uint64_t damaged; /* pages */
} KernelStreamCounters;

typedef enum KernelStreamFlags {
        KERNEL_STREAM_SUMS =
                1 << 0, /* the monitor says no breakdown and no threshold: sum it up here */
        KERNEL_STREAM_STOPS =
                1 << 1, /* an error that a stop found is a violation, without a breakdown */
} KernelStreamFlags;

/*
 * Makes the instance and switches its events on. If one of a daemon that died is there, it is used
 * on, with what is in it: *ret_stale. buffer_size: for all CPUs together.
 */
int kernel_stream_new(const KernelTracing *tracing, unsigned flags, size_t buffer_size,
                      KernelStream **ret, bool *ret_stale, char **ret_reason);

/* Removes the instance. */
KernelStream *kernel_stream_free(KernelStream *stream);
DEFINE_CLEANUP(KernelStream, kernel_stream_free);

/* Readable when there are events. */
int kernel_stream_get_fd(KernelStream *stream);

/*
 * Hands over all violations that are there, in the order of their times: as KERNEL_EVENT_DETAIL,
 * or, without a breakdown, KERNEL_EVENT_ERROR_ENV. Returns how many.
 */
int kernel_stream_read(KernelStream *stream, KernelEventHandler handler, void *userdata);

/* There is more that could be handed over soon, though nothing more is readable. */
bool kernel_stream_is_pending(const KernelStream *stream);

void kernel_stream_get_counters(KernelStream *stream, KernelStreamCounters *ret);

#endif
