/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef RECORDING_H
#define RECORDING_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tlob-record.h"

/*
 * What the kernel's own tracing says of task switches: an instance of our own in tracefs, which is
 * left as found. Every failure fails the test, and so do events that were lost.
 */

typedef struct Recording Recording;

Recording *recording_start(void);

/* Ends it and reads all events; the instance is gone after that. */
void recording_stop(Recording *recording);

/*
 * The time that a task has spent in each state between two moments (CLOCK_MONOTONIC), at both of which it
 * runs. Returns how many changes of state there were, or -1 if some are missing: a task does not
 * come twice to a CPU without leaving it, and does not leave it without having come.
 */
ssize_t recording_spent(const Recording *recording, uint32_t tid, uint64_t start_ns,
                        uint64_t end_ns, uint64_t ret_spent_ns[static TLOB_N_STATES]);

/* For people: all changes of state of the task between two moments. */
void recording_print(const Recording *recording, uint32_t tid, uint64_t start_ns, uint64_t end_ns);

/* Takes NULL, and one that has not been stopped. */
Recording *recording_free(Recording *recording);

#endif
