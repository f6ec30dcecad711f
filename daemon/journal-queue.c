/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A ring. Its two positions are one word, which is written at once, and after what it speaks of: so
 * a process that is killed between any two stores leaves a sound queue, which says whether the
 * first datagram was being sent just then. Nobody else can write it, but a daemon of another
 * version may have, so it is checked before anything is taken out. An empty one begins at its first
 * page again.
 */

#include "journal-queue.h"

#include <stdint.h>
#include <sys/stat.h>

#include "sealed-memory.h"

#define MAGIC UINT64_C(0x3271626f6c74) /* to be changed with the structs here */

/* What was written to behind that is given back when the queue is empty. */
#define KEEP_SIZE (64U << 10)

/* They count bytes and wrap, and are multiples of 8, as all sizes in the ring are. */
typedef union Positions {
        struct {
                uint32_t begin;
                uint32_t end;
        };
        uint64_t word;
} Positions;

typedef struct Entry {
        uint32_t size; /* of the datagram; SKIP: the next one is at the begin of the ring */
        uint32_t reserved;
        char bytes[];
} Entry;

#define SKIP UINT32_MAX

typedef struct Memory {
        uint64_t magic;
        uint64_t positions;
        uint64_t sending; /* the first datagram: where it begins, with 1 added; 0: it is not */
        char ring[JOURNAL_QUEUE_SIZE];
} Memory;

struct JournalQueue {
        int fd;
        Memory *memory;
        size_t n;
        uint32_t reached; /* the end of what was written to */
        bool was_sending; /* the first datagram, when the process before was killed */
};

static Positions get_positions(const JournalQueue *queue) {
        return (Positions) { .word = __atomic_load_n(&queue->memory->positions, __ATOMIC_ACQUIRE) };
}

static void set_positions(JournalQueue *queue, uint32_t begin, uint32_t end) {
        Positions positions = { .begin = begin, .end = end };

        __atomic_store_n(&queue->memory->positions, positions.word, __ATOMIC_RELEASE);
}

static uint32_t offset_of(uint32_t position) {
        return position % JOURNAL_QUEUE_SIZE;
}

static Entry *entry_at(const JournalQueue *queue, uint32_t position) {
        return (Entry *) (queue->memory->ring + offset_of(position));
}

/* What is left of the ring from there to its end. */
static uint32_t left_at(uint32_t position) {
        return JOURNAL_QUEUE_SIZE - offset_of(position);
}

static uint64_t size_with(uint64_t datagram_size) {
        return (sizeof(Entry) + datagram_size + 7) & ~UINT64_C(7);
}

/* Where the datagram is that is at that position, or begins the ring after it. */
static uint32_t skip(const JournalQueue *queue, uint32_t position) {
        return entry_at(queue, position)->size == SKIP ? position + left_at(position) : position;
}

/* Where the first one begins is a multiple of 8. */
static uint64_t sending(const JournalQueue *queue) {
        return (uint64_t) get_positions(queue).begin + 1;
}

/* NULL: errno says why. */
static JournalQueue *map(int fd) {
        JournalQueue *queue = calloc(1, sizeof(*queue));
        void *memory;

        if (!queue)
                return NULL;
        memory = mmap(NULL, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED) {
                free(queue);
                return NULL;
        }
        queue->fd = -EBADF;
        queue->memory = memory;
        return queue;
}

int journal_queue_new(JournalQueue **ret) {
        _cleanup_close_ int fd = sealed_memory_new("tlob-journal", sizeof(Memory));
        JournalQueue *queue;

        if (fd < 0)
                return fd;
        queue = map(fd);
        if (!queue)
                return -errno;
        queue->fd = TAKE_FD(fd);
        queue->memory->magic = MAGIC;
        *ret = queue;
        return 0;
}

/* Each datagram ends before the next one begins, the last one where all ends. Counts them. */
static bool is_sound(JournalQueue *queue) {
        Positions positions = get_positions(queue);
        uint32_t position = positions.begin, end = positions.end;

        if (queue->memory->magic != MAGIC || position % 8 != 0 || end % 8 != 0 ||
            end - position > JOURNAL_QUEUE_SIZE)
                return false;
        while (position != end) {
                uint32_t begin = skip(queue, position);
                uint64_t size = size_with(entry_at(queue, begin)->size);

                if (begin - position >= end - position || size > left_at(begin) ||
                    size > end - begin)
                        return false;
                position = begin + (uint32_t) size;
                queue->n++;
        }
        return true;
}

int journal_queue_inherit(int fd, JournalQueue **ret) {
        _cleanup_(journal_queue_freep) JournalQueue *queue = NULL;
        struct stat st;

        if (!sealed_memory_is(fd))
                return -ESTALE;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size != sizeof(Memory))
                return -ESTALE;
        queue = map(fd);
        if (!queue)
                return -errno;
        if (!is_sound(queue))
                return -ESTALE;
        queue->was_sending = queue->n > 0 && queue->memory->sending == sending(queue);
        queue->memory->sending = 0;
        queue->reached = JOURNAL_QUEUE_SIZE;
        queue->fd = fd;
        *ret = TAKE_PTR(queue);
        return 0;
}

JournalQueue *journal_queue_free(JournalQueue *queue) {
        if (!queue)
                return NULL;
        (void) munmap(queue->memory, sizeof(Memory));
        safe_close(queue->fd);
        free(queue);
        return NULL;
}

int journal_queue_get_fd(const JournalQueue *queue) {
        return queue->fd;
}

int journal_queue_push(JournalQueue *queue, const void *bytes, size_t size) {
        Positions positions = get_positions(queue);
        uint32_t begin = positions.end;
        Entry *entry;

        if (size > JOURNAL_QUEUE_SIZE - sizeof(Entry))
                return -ENOBUFS;
        if (size_with(size) > left_at(begin))
                begin += left_at(begin);
        if (begin - positions.begin + size_with(size) > JOURNAL_QUEUE_SIZE)
                return -ENOBUFS;
        if (begin != positions.end)
                entry_at(queue, positions.end)->size = SKIP;
        entry = entry_at(queue, begin);
        entry->size = (uint32_t) size;
        memcpy(entry->bytes, bytes, size);
        set_positions(queue, positions.begin, begin + (uint32_t) size_with(size));
        queue->n++;
        if (queue->reached < offset_of(begin) + size_with(size))
                queue->reached = offset_of(begin) + (uint32_t) size_with(size);
        return 0;
}

bool journal_queue_first(const JournalQueue *queue, const void **ret, size_t *ret_size) {
        const Entry *entry;

        if (queue->n == 0)
                return false;
        entry = entry_at(queue, skip(queue, get_positions(queue).begin));
        *ret = entry->bytes;
        *ret_size = entry->size;
        return true;
}

bool journal_queue_begin(JournalQueue *queue) {
        __atomic_store_n(&queue->memory->sending, sending(queue), __ATOMIC_RELEASE);
        return queue->was_sending;
}

void journal_queue_end(JournalQueue *queue) {
        __atomic_store_n(&queue->memory->sending, 0, __ATOMIC_RELEASE);
}

/* All of its pages but the first ones. */
static void give_back(JournalQueue *queue) {
        if (queue->reached <= KEEP_SIZE)
                return;
        (void) madvise((char *) queue->memory + KEEP_SIZE, sizeof(Memory) - KEEP_SIZE, MADV_REMOVE);
        queue->reached = 0;
}

void journal_queue_pop(JournalQueue *queue) {
        Positions positions = get_positions(queue);
        uint32_t begin = skip(queue, positions.begin);

        begin += (uint32_t) size_with(entry_at(queue, begin)->size);
        queue->was_sending = false;
        queue->n--;
        if (begin != positions.end) {
                set_positions(queue, begin, positions.end);
                return;
        }
        set_positions(queue, 0, 0);
        give_back(queue);
}

size_t journal_queue_count(const JournalQueue *queue) {
        return queue->n;
}
