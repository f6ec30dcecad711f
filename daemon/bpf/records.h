/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_RECORDS_H
#define BPF_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/layout.h"
#include "bpf/ring.h"
#include "report/violation.h"

/*
 * The ring buffer of the BPF programs: records become reports here, a stack joins its violation,
 * and what the back end itself has to report comes after all records that were there before.
 */

typedef struct RecordHandlers {
        /* Is the binding at that index still the one of that generation? */
        bool (*is_current)(uint32_t index, uint64_t generation, void *userdata);
        void (*on_report)(const Report *report, void *userdata);
        void (*on_instance)(const struct tlob_instance_record *record, void *userdata);
} RecordHandlers;

#define RECORD_STACKS_MAX 64

/* Of a violation that is still to come. */
typedef struct PendingStack {
        uint64_t id;
        Stack stack;
} PendingStack;

typedef struct RecordReader {
        Ring ring;
        const RecordHandlers *handlers;
        void *userdata;

        PendingStack stacks[RECORD_STACKS_MAX];
        unsigned next_stack;

        Report *owed;
        size_t n_owed;

        /* During a call: when to stop, and what was read. */
        uint64_t until_ns;
        int n;
} RecordReader;

/* As the programs have noted it. */
Peer record_read_peer(const struct tlob_peer *peer);

/* handlers and userdata must outlive the reader; the descriptor stays the caller's. */
int record_reader_init(RecordReader *reader, int map_fd, size_t size,
                       const RecordHandlers *handlers, void *userdata);
void record_reader_done(RecordReader *reader);

/* As ring_note_taking(): reports say of themselves that they are repeated. */
void record_reader_note_taking(RecordReader *reader, uint32_t *taking);

/* Readable when there are records. */
int record_reader_get_fd(const RecordReader *reader);

/*
 * Notes a report that is to come after the records that are in the buffer now. Copies; 0 or
 * -ENOMEM.
 */
int record_reader_owe(RecordReader *reader, const Report *report);

/*
 * Hands over what is there, for usec at most: the rest makes the descriptor readable again.
 * *ret_all: it has seen all records that were there when it was called, and handed over what was
 * owed. Returns how many reports came out, or a negative errno.
 */
int record_reader_dispatch(RecordReader *reader, uint64_t usec, bool *ret_all);

/* The same, however long it takes: all that is there now, but not what comes meanwhile. */
int record_reader_flush(RecordReader *reader);

#endif
