/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DELEGATE_CONNECTION_H
#define DELEGATE_CONNECTION_H

#include <stdbool.h>

#include "backend/wire.h"

/*
 * The connection to the system's tlobd. It is waited for, for some seconds at most: it answers
 * within milliseconds, and who waits is the daemon of one user.
 */

typedef struct Told Told;

typedef struct Connection {
        int fd;              /* -EBADF: there is none */
        Packet packet;       /* of a question, and its answer */
        Told *first, **last; /* what was told while an answer was waited for */
} Connection;

void connection_init(Connection *connection);

/* And what was told is forgotten. */
void connection_close(Connection *connection);

/*
 * Connects at that path, and asks whether it may. -ENOTCONN: nobody is there. Another negative
 * errno comes with a sentence: it may not.
 */
int connection_open(Connection *connection, const char *path, char **ret_error);

/* Begins a question in connection->packet. */
void connection_begin(Connection *connection, WireType type, uint64_t id);

/*
 * Asks it, fd goes with it (negative: none), and leaves the answer there, behind its error. Returns
 * 0, -ENOTCONN (the connection is lost, and closed), or what is wrong, with a sentence.
 */
int connection_ask(Connection *connection, int fd, char **ret_error);

/*
 * The next that was told, until there is nothing more. Returns 1, 0, or -ENOTCONN: the connection
 * is lost, and closed.
 */
int connection_next(Connection *connection, Packet *packet);

/* Is there something that was told, and that the descriptor does not show? */
bool connection_has_told(const Connection *connection);

#endif
