/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Any bytes at the begin of a queue that a daemon has left to the next one, its positions among
 * them. If it is taken, all that is in it comes out, and it is used as any other.
 */

#include "journal-queue.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

#include "fuzz.h"

static int memory_of(const uint8_t *data, size_t size) {
        _cleanup_(journal_queue_freep) JournalQueue *queue = NULL;
        uint8_t *bytes;
        int fd;

        fuzz_assert(journal_queue_new(&queue) == 0);
        fd = fcntl(journal_queue_get_fd(queue), F_DUPFD_CLOEXEC, 3);
        bytes = mmap(NULL, size + 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        fuzz_assert(fd >= 0 && bytes != MAP_FAILED);
        /* A zero leaves what is there. */
        for (size_t i = 0; i < size; i++)
                bytes[i] ^= data[i];
        (void) munmap(bytes, size + 1);
        return fd;
}

static void read_all(JournalQueue *queue) {
        size_t n = journal_queue_count(queue), size, sum = 0;
        const void *bytes;

        for (; journal_queue_first(queue, &bytes, &size); n--) {
                for (size_t i = 0; i < size; i++)
                        sum += ((const uint8_t *) bytes)[i];
                fuzz_assert(size <= JOURNAL_QUEUE_SIZE && sum <= SIZE_MAX / 2);
                journal_queue_pop(queue);
        }
        fuzz_assert(n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(journal_queue_freep) JournalQueue *queue = NULL;
        int fd = memory_of(data, size);
        size_t before;

        if (journal_queue_inherit(fd, &queue) < 0) {
                (void) close(fd);
                return 0;
        }
        before = journal_queue_count(queue);
        for (size_t i = 0; journal_queue_push(queue, data, size) == 0 && i < 3; i++)
                fuzz_assert(journal_queue_count(queue) == before + i + 1);
        read_all(queue);
        fuzz_assert(journal_queue_push(queue, data, size) == 0);
        read_all(queue);
        return 0;
}
