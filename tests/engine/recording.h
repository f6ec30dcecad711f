/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef RECORDING_H
#define RECORDING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/words.h"

/*
 * What the kernel's own tracing says of task switches: two instances of our own in tracefs, which
 * is left as found. Programs on a tracepoint run one after the other, in the order in which they
 * came: one instance writes down each change of state before the engine does, if that comes after
 * recording_new(), the other one after it. However long the machine takes its CPU away in between,
 * the engine's moment lies between the two.
 *
 * Every failure fails the test, and so do events that were lost.
 */

typedef struct Recording Recording;

/* To be called before the engine is set up. */
Recording *recording_new(void);

/* To be called after that, any number of times. */
void recording_start(Recording *recording);

/* Ends it and reads all events. */
void recording_stop(Recording *recording);

/* Of one task between two moments. */
typedef struct Spent {
        uint64_t ns[TLOB_N_STATES];
        uint64_t unsure_ns; /* so much may each of them differ from what the engine saw */
        uint64_t waking_ns; /* and so much more, if it was not told of wakeups: what these took */
        size_t n_changes;
} Spent;

/*
 * The time that a task has spent in each state between two moments (CLOCK_MONOTONIC), at both of
 * which it runs. Returns 0, or -1 if changes are missing: a task does not come twice to a CPU
 * without leaving it, does not leave it without having come, comes to no other CPU than the one
 * that it was moved to last, and both instances see the same.
 */
int recording_spent(const Recording *recording, uint32_t tid, uint64_t start_ns, uint64_t end_ns,
                    Spent *ret);

/* For people: all changes of state of the task between two moments. */
void recording_print(const Recording *recording, uint32_t tid, uint64_t start_ns, uint64_t end_ns);

/* Takes NULL, and one that has not been stopped. */
Recording *recording_free(Recording *recording);

#endif
