/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The kernel counts each page of a ring buffer that is mapped as memory of the daemon, and twice,
 * because what is in it lies there twice: behind the end comes the beginning once more, so that no
 * record has a gap. As a rule it is empty. So nothing but the two positions stays mapped.
 */

#include "bpf/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * So much is mapped at a time: to map all that can be in a large buffer takes longer than what is
 * read of it in one turn. A record begins in a piece, and may end behind it.
 */
#define PIECE_SIZE (256U << 10)
#define RECORD_MAX (64U << 10)

/* Part of what is in the buffer. */
typedef struct Piece {
        const char *memory;
        uint64_t begin; /* position of its first byte */
        size_t size;
} Piece;

static size_t page_size(void) {
        return (size_t) sysconf(_SC_PAGESIZE);
}

int ring_init(Ring *ring, int map_fd, size_t size, RingHandler handler, void *userdata) {
        size_t page = page_size();
        void *p;

        *ring = (Ring) { .map_fd = map_fd, .size = size, .handler = handler, .userdata = userdata };
        p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
        if (p == MAP_FAILED)
                return -errno;
        ring->consumed = p;
        p = mmap(NULL, page, PROT_READ, MAP_SHARED, map_fd, (off_t) page);
        if (p == MAP_FAILED)
                return -errno;
        ring->produced = p;
        return 0;
}

void ring_done(Ring *ring) {
        if (ring->consumed)
                (void) munmap(ring->consumed, page_size());
        if (ring->produced)
                (void) munmap((void *) ring->produced, page_size());
        *ring = (Ring) {};
}

void ring_note_taking(Ring *ring, uint32_t *taking) {
        ring->taking = taking;
        ring->taken_before = *taking;
}

/* Positions are multiples of 8, and a note is never 0. */
static void note_taking(Ring *ring, uint64_t position) {
        uint32_t note = (uint32_t) position | 1;

        if (!ring->taking)
                return;
        ring->is_repeated = ring->taken_before == note;
        ring->taken_before = 0;
        __atomic_store_n(ring->taking, note, __ATOMIC_RELEASE);
}

static int piece_map(const Ring *ring, uint64_t from, uint64_t to, Piece *ret) {
        uint64_t begin = from & ~(uint64_t) (page_size() - 1);
        size_t size = (size_t) (to - begin);
        void *p;

        p = mmap(NULL, size, PROT_READ, MAP_SHARED, ring->map_fd,
                 (off_t) (2 * page_size() + (begin & (ring->size - 1))));
        if (p == MAP_FAILED)
                return -errno;
        *ret = (Piece) { .memory = p, .begin = begin, .size = size };
        return 0;
}

/* Returns the size of the record at that position, with its header; 0: it is being written. */
static size_t take_record(const Ring *ring, const Piece *piece, uint64_t position, int *ret_error) {
        const uint32_t *header = (const uint32_t *) (piece->memory + (position - piece->begin));
        uint32_t word = __atomic_load_n(header, __ATOMIC_ACQUIRE);
        size_t size = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

        if (word & BPF_RINGBUF_BUSY_BIT)
                return 0;
        if (!(word & BPF_RINGBUF_DISCARD_BIT))
                *ret_error = ring->handler(ring->userdata,
                                           (const char *) header + BPF_RINGBUF_HDR_SZ, size);
        return (size + BPF_RINGBUF_HDR_SZ + 7) & ~(size_t) 7;
}

/* The records from there up to the end. Returns where the next one begins. */
static uint64_t take_records(Ring *ring, const Piece *piece, uint64_t position, uint64_t end,
                             int *ret_error) {
        while (position < end && *ret_error >= 0) {
                size_t size;

                note_taking(ring, position);
                size = take_record(ring, piece, position, ret_error);
                if (size == 0)
                        break;
                position += size;
                __atomic_store_n(ring->consumed, position, __ATOMIC_RELEASE);
        }
        return position;
}

int ring_consume(Ring *ring) {
        uint64_t position = *ring->consumed, stop, before;
        uint64_t end = __atomic_load_n(ring->produced, __ATOMIC_ACQUIRE);
        Piece piece = {};
        int r = 0;

        do {
                before = position;
                if (position == end)
                        break;
                stop = end - position > PIECE_SIZE ? position + PIECE_SIZE : end;
                r = piece_map(ring, position, stop == end ? end : stop + RECORD_MAX, &piece);
                if (r < 0)
                        break;
                position = take_records(ring, &piece, position, stop, &r);
                (void) munmap((void *) piece.memory, piece.size);
        } while (r >= 0 && position != before);
        return r < 0 ? r : 0;
}
