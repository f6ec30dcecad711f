/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef JOURNAL_QUEUE_H
#define JOURNAL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

/*
 * Datagrams that journald has not taken, in memory without a file that can outlive this process:
 * who gets its descriptor goes on with what is in it, whenever the process before was killed.
 */
typedef struct JournalQueue JournalQueue;

/*
 * How much it holds: of each datagram a length, too. A record of 200 bytes becomes an entry of
 * 1500: so the reports of a full ring buffer of the usual size find room, as a tlobd reads them at
 * once that begins where another one was killed.
 */
#define JOURNAL_QUEUE_SIZE (8 << 20)

/* Empty. Returns 0 or a negative errno. */
int journal_queue_new(JournalQueue **ret);

/*
 * That of a predecessor, by a descriptor that becomes its own. Returns 0, -ESTALE if it is none or
 * is not sound, another negative errno; then fd stays the caller's.
 */
int journal_queue_inherit(int fd, JournalQueue **ret);
JournalQueue *journal_queue_free(JournalQueue *queue);
DEFINE_CLEANUP(JournalQueue, journal_queue_free);

/* Stays the queue's. */
int journal_queue_get_fd(const JournalQueue *queue);

/* Copies. Returns 0, or -ENOBUFS if there is no room. */
int journal_queue_push(JournalQueue *queue, const void *bytes, size_t size);

/* Valid until the next call on the queue; false: it is empty. */
bool journal_queue_first(const JournalQueue *queue, const void **ret, size_t *ret_size);

/*
 * Notes that the first one is being sent, or is no longer (it was not taken). Returns whether a
 * process that was killed was sending it, too: it may have been.
 */
bool journal_queue_begin(JournalQueue *queue);
void journal_queue_end(JournalQueue *queue);

/* Drops the first one, which must be there. */
void journal_queue_pop(JournalQueue *queue);

size_t journal_queue_count(const JournalQueue *queue);

#endif
