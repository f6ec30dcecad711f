/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef JOURNAL_SOCKET_H
#define JOURNAL_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "journal-queue.h"

/*
 * The way to journald, for the daemon's log and for reports. There is one for the process, like
 * standard error: whoever logs needs no handle.
 */

/* Entries that never came out, by cause. */
typedef struct JournalSocketDrops {
        uint64_t stalled; /* journald took none or was not there, and the queue was full */
        uint64_t refused; /* the entry is too long for it, or may not be sent */
} JournalSocketDrops;

/*
 * Sends an entry, or queues it if journald takes none now or is not there; never waits. fields:
 * "NAME=value", the value of any bytes. Returns 0, or a negative errno if the entry was dropped
 * (and counted).
 */
int journal_socket_send(const struct iovec *fields, size_t n);

/* Sends what is queued, as far as journald takes it. Returns how many entries are left. */
size_t journal_socket_flush(void);

/* How many entries are queued. */
size_t journal_socket_pending(void);

JournalSocketDrops journal_socket_drops(void);

/*
 * Queues there from now on, behind what is in it; what is queued already comes last, and is dropped
 * where there is no room. The queue becomes the socket's.
 */
void journal_socket_use(JournalQueue *queue);

/* For tests: another socket than journald's, a static string. Begins anew, with nothing queued. */
void journal_socket_set_path(const char *path);

#endif
