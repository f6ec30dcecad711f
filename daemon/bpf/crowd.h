/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_CROWD_H
#define BPF_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/layout.h"

/*
 * Are there too many processes for probes of their own? Each such probe makes all others at its
 * place dearer, as the kernel asks each of them whose hit it is: some 30 ns for a process (Linux
 * 6.18). And to set one takes some milliseconds.
 */

#define CROWD_PROCESSES_MAX 64 /* with probes of their own, at one place */
#define CROWD_BURST_MAX     64 /* new ones within CROWD_BURST_NS */
#define CROWD_BURST_NS      1000000000ULL

/* What each user has: users whose ids are so far apart share one. */
#define OWNED_CROWDS 64

typedef struct Crowd {
        uint64_t burst_begin_ns;
        unsigned burst;
} Crowd;

/*
 * With one more, of which that record is, there are so many. Those that were there already are no
 * burst.
 */
static inline bool crowd_is_too_large(Crowd *crowd, size_t n_processes,
                                      const struct tlob_process_record *record) {
        if (n_processes > CROWD_PROCESSES_MAX)
                return true;
        if (record->event == TLOB_PROCESS_FOUND)
                return false;
        if (record->time_ns - crowd->burst_begin_ns >= CROWD_BURST_NS)
                *crowd = (Crowd) { .burst_begin_ns = record->time_ns };
        return ++crowd->burst > CROWD_BURST_MAX;
}

#endif
