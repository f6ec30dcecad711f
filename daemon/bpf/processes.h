/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_PROCESSES_H
#define BPF_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/layout.h"
#include "bpf/ring.h"

/* The processes of the units that are followed, as the BPF programs tell of them. */

struct bpf_program;

typedef struct ProcessHandlers {
        /* It is in that unit, or has exited; it may be told more than once. */
        void (*on_process)(const struct tlob_process_record *record, void *userdata);

        /* Between the two all processes are told that there are. */
        void (*on_begin_round)(void *userdata);
        void (*on_end_round)(void *userdata);
} ProcessHandlers;

typedef struct ProcessReader {
        Ring ring;
        int epoll_fd;
        int round_fd; /* an eventfd: a round is due */
        const struct bpf_program *finder;
        const __u64 *n_lost; /* in the programs' memory */
        uint64_t n_lost_before;
        const ProcessHandlers *handlers;
        void *userdata;
        bool is_due; /* a round */
        int timer_fd;
        bool looks_again;  /* the timer is armed: a round is due when it fires */
        uint64_t until_ns; /* of one dispatch */
} ProcessReader;

/*
 * size: of the ring buffer, in bytes; finder: find_processes in process.bpf.h. All that is given
 * stays the caller's, and outlives the reader.
 */
int process_reader_init(ProcessReader *reader, int map_fd, size_t size,
                        const struct bpf_program *finder, const __u64 *n_lost,
                        const ProcessHandlers *handlers, void *userdata);
void process_reader_done(ProcessReader *reader);

/* Readable when there is something to dispatch. */
int process_reader_get_fd(const ProcessReader *reader);

/* All processes are to be looked for: by the next dispatch, or at once. */
void process_reader_request_round(ProcessReader *reader);
int process_reader_run_due_round(ProcessReader *reader);

/*
 * Tells what there is to tell; of a round everything, else no more than some. 0 or a negative
 * errno.
 */
int process_reader_dispatch(ProcessReader *reader);

#endif
