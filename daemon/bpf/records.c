/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Reads the ring buffer, for a limited time: programs can fill it faster than anybody empties it,
 * and whoever reads to its end may never come back. So a handler says when it has been enough.
 */

#include "bpf/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define STOP (-ECANCELED) /* enough for now: returned by the handler, and so by ring_consume() */

Peer record_read_peer(const struct tlob_peer *peer) {
        Peer p = {
                .is_known = peer->time_ns != 0,
                .kind = peer->kind,
                .tid = peer->tid,
                .pid = peer->pid,
        };

        memcpy(p.comm, peer->comm, sizeof(peer->comm));
        return p;
}

static void report_from_record(const struct tlob_record *record, Report *ret) {
        *ret = (Report) {
                .type = record->type == TLOB_RECORD_VIOLATION ? REPORT_VIOLATION
                                                              : REPORT_COMPLETION,
                .backend_index = record->binding,
                .id = record->id,
                .time_ns = record->time_ns,
                .late_ns = record->late_ns,
                .elapsed_ns = record->elapsed_ns,
                .spent_ns = { record->spent_ns[0], record->spent_ns[1], record->spent_ns[2] },
                .stolen_ns = record->stolen_ns,
                .probes_ns = record->probes_ns,
                .cgroup_id = record->cgroup_id,
                .budget = record->budget,
                .exceeded = record->exceeded,
                .state = record->state,
                .end = record->end,
                .tid = record->tid,
                .pid = record->pid,
        };
        if (record->state == TLOB_N_STATES)
                report_forget_states(ret);
        memcpy(ret->comm, record->comm, sizeof(record->comm));
        ret->peers = (Peers) {
                .woken_by = record_read_peer(&record->woken_by),
                .preempted_by = record_read_peer(&record->preempted_by),
        };
}

/* Stacks come before their violations, and those of other CPUs may come in between. */
static void keep_stack(RecordReader *reader, const struct tlob_stack_record *record, size_t size) {
        PendingStack *p = &reader->stacks[reader->next_stack++ % ELEMENTSOF(reader->stacks)];

        p->id = record->id;
        p->stack.n = (size - offsetof(struct tlob_stack_record, frame)) / sizeof(record->frame[0]);
        if (p->stack.n > TLOB_FRAMES_MAX)
                p->stack.n = TLOB_FRAMES_MAX;
        memcpy(p->stack.frames, record->frame, p->stack.n * sizeof(record->frame[0]));
        stack_trim(&p->stack);
}

static const Stack *find_stack(const RecordReader *reader, uint64_t id) {
        for (size_t i = 0; i < ELEMENTSOF(reader->stacks); i++)
                if (reader->stacks[i].id == id)
                        return &reader->stacks[i].stack;
        return NULL;
}

static void take_record(RecordReader *reader, const struct tlob_record *record, size_t size) {
        Report report;

        /* A binding that has gone since: its last records were read before it went. */
        if (size < sizeof(*record) ||
            !reader->handlers->is_current(record->binding, record->binding_generation,
                                          reader->userdata))
                return;

        report_from_record(record, &report);
        report.is_repeated = reader->ring.is_repeated;
        if (report.type == REPORT_VIOLATION)
                report.stack = find_stack(reader, report.id);
        reader->handlers->on_report(&report, reader->userdata);
        reader->n++;
}

static int on_record(void *userdata, const void *data, size_t size) {
        const struct tlob_record *record = data;
        RecordReader *reader = userdata;

        switch (record->type) {
        case TLOB_RECORD_NOTICE:
                /* It has woken whoever reads the counters. */
                break;
        case TLOB_RECORD_STACK:
                if (size >= offsetof(struct tlob_stack_record, frame))
                        keep_stack(reader, data, size);
                break;
        case TLOB_RECORD_INSTANCE:
                if (size >= sizeof(struct tlob_instance_record))
                        reader->handlers->on_instance(data, reader->userdata);
                break;
        default:
                take_record(reader, record, size);
        }

        return now_ns() >= reader->until_ns ? STOP : 0;
}

int record_reader_init(RecordReader *reader, int map_fd, size_t size,
                       const RecordHandlers *handlers, void *userdata) {
        *reader = (RecordReader) { .handlers = handlers, .userdata = userdata };
        return ring_init(&reader->ring, map_fd, size, on_record, reader);
}

void record_reader_done(RecordReader *reader) {
        ring_done(&reader->ring);
        free(reader->owed);
        *reader = (RecordReader) {};
}

void record_reader_note_taking(RecordReader *reader, uint32_t *taking) {
        ring_note_taking(&reader->ring, taking);
}

int record_reader_get_fd(const RecordReader *reader) {
        return reader->ring.map_fd;
}

int record_reader_owe(RecordReader *reader, const Report *report) {
        Report *p;

        p = reallocarray(reader->owed, reader->n_owed + 1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        reader->owed = p;
        reader->owed[reader->n_owed++] = *report;
        return 0;
}

/* One that a handler adds comes the next time. */
static void hand_over_owed(RecordReader *reader) {
        _cleanup_free_ Report *owed = reader->owed;
        size_t n = reader->n_owed;

        reader->owed = NULL;
        reader->n_owed = 0;
        for (size_t i = 0; i < n; i++, reader->n++)
                reader->handlers->on_report(&owed[i], reader->userdata);
}

int record_reader_dispatch(RecordReader *reader, uint64_t usec, bool *ret_all) {
        int r;

        reader->n = 0;
        reader->until_ns = usec == UINT64_MAX ? UINT64_MAX : now_ns() + usec * 1000;
        r = ring_consume(&reader->ring);
        if (r < 0 && r != STOP)
                return r;

        *ret_all = r >= 0;
        if (*ret_all)
                hand_over_owed(reader);
        return reader->n;
}

int record_reader_flush(RecordReader *reader) {
        bool all;

        return record_reader_dispatch(reader, UINT64_MAX, &all);
}
