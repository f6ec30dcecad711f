/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_RING_H
#define BPF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A ring buffer of the BPF programs, read as libbpf does, but mapped only as far as there is
 * something to be read, and only while it is.
 */

/* One record; it is gone when the handler returns. A negative errno: enough for now. */
typedef int (*RingHandler)(void *userdata, const void *data, size_t size);

typedef struct Ring {
        int map_fd; /* readable when there are records */
        size_t size;
        RingHandler handler;
        void *userdata;
        unsigned long *consumed; /* NULL: it is not there */
        const unsigned long *produced;
        uint32_t *taking; /* where it is noted which record the handler has; NULL: nowhere */
        uint32_t taken_before;
        bool is_repeated; /* the record that the handler has: it may have had it before */
} Ring;

/*
 * The descriptor stays the caller's; size: of the map, in bytes. Returns 0 or a negative errno;
 * ring_done() is due in any case.
 */
int ring_init(Ring *ring, int map_fd, size_t size, RingHandler handler, void *userdata);
void ring_done(Ring *ring);

/*
 * From now on it is noted there which record the handler has, in memory that outlives the process:
 * who is killed then has not taken it off the buffer, and the next one is told that it is repeated.
 */
void ring_note_taking(Ring *ring, uint32_t *taking);

/*
 * Hands over all records that there are when it is called, up to one that is still being written:
 * what comes meanwhile can come faster than it is read, for ever. Returns 0 or a negative errno,
 * that of the handler too: the record that it was given then is off the buffer.
 */
int ring_consume(Ring *ring);

#endif
