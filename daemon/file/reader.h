/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILE_READER_H
#define FILE_READER_H

#include <sys/types.h>

/*
 * Processes that read files for the daemon: a reader answers the questions that come over its
 * socket, one after the other, and is gone when the socket is closed.
 */

/* The process that starts readers. */
typedef struct FileReaders {
        int fd; /* -EBADF: there is none */
        pid_t pid;
} FileReaders;

/*
 * Starts it, so that readers have nothing of what this process comes to have. Returns 0 or a
 * negative errno.
 */
int file_readers_start(FileReaders *ret);

/*
 * Ends it, when its readers have ended, which they do when their sockets are closed, or after some
 * tenths of a second.
 */
void file_readers_stop(FileReaders *readers);

/* Another reader. Returns 0 or a negative errno: -EPIPE if the process that starts them is gone. */
int file_readers_add(const FileReaders *readers, int *ret_fd);

#endif
