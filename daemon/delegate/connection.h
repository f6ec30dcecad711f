/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DELEGATE_CONNECTION_H
#define DELEGATE_CONNECTION_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "backend/wire.h"

/*
 * The connection to the system's tlobd, org.tlob1.Lender on the system bus. Answers are waited for,
 * for some seconds at most: they come within milliseconds, and who waits is the daemon of one user.
 */

/* What it tells, from connection_dispatch(). Packets are gone when a handler returns. */
typedef struct ConnectionHandlers {
        /* lost: so many others before it were not told. */
        void (*report)(uint64_t id, Packet *report, uint64_t lost, void *userdata);

        /* why: a sentence, or NULL if it ends itself. for_good: see dbus/org.tlob1.xml. */
        void (*gone)(uint64_t id, Packet *books, bool for_good, const char *why, void *userdata);

        /* It is there now, or is there no longer and has forgotten all. */
        void (*is_there)(bool yes, void *userdata);
} ConnectionHandlers;

typedef struct Connection {
        sd_bus *bus;  /* NULL: there is none */
        char *lender; /* the name of the system's tlobd there; NULL: it is not there */
        uint32_t n_heard;
        const ConnectionHandlers *handlers;
        void *userdata;
        Packet told;
} Connection;

/*
 * Connects to the bus. Whether the system's tlobd is there is in lender. Returns 0, or -ENOTCONN
 * with a sentence.
 */
int connection_open(Connection *connection, const ConnectionHandlers *handlers, void *userdata,
                    char **ret_error);
void connection_close(Connection *connection);

/* A call to be asked. -ENOTCONN: it is not there. */
int connection_new_call(Connection *connection, const char *member, sd_bus_message **ret);

/*
 * Asks it, and waits. ret_reply: NULL if there is nothing in it. Returns 0, -ENOTCONN (it does not
 * answer, and the connection is closed), or what is wrong, most with a sentence.
 */
int connection_ask(Connection *connection, sd_bus_message *call, sd_bus_message **ret_reply,
                   char **ret_error);

/* Calls the handlers. -ENOTCONN: the connection is lost, and closed. */
int connection_dispatch(Connection *connection);

/* Is there something to dispatch that the descriptor does not show? */
bool connection_has_read(const Connection *connection);

#endif
