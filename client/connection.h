/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "base/cleanup.h"
#include "options.h"
#include "polkit-agent.h"

/* The way to tlobd: the bus, calls, and what to tell people when a call fails. */

#define _cleanup_message_ _cleanup_(sd_bus_message_unrefp)

typedef struct Connection {
        const Options *options; /* not owned */
        sd_bus *bus;            /* NULL until connection_open() */
        bool needs_rights; /* for what is asked: polkit is answered, and tlobd started for it */
        bool is_denied;    /* what was asked for; so is more of the same */
        bool is_quiet;     /* why it does not answer was said already */
        PolkitAgent agent;
} Connection;

void connection_done(Connection *connection);

/* Connects, unless it is connected. Returns 0, or a negative errno after it has said why not. */
int connection_open(Connection *connection);

/* True if the daemon's clock is ours: neither --host= nor --machine= was given. */
bool connection_is_local(const Connection *connection);

/* Says where files of another machine, "The journal" or such, can be read. Returns -EOPNOTSUPP. */
int connection_complain_elsewhere(const Connection *connection, const char *what);

/* Begins a call of a method of the manager (path NULL) or another object, and connects for it. */
int connection_new_call(Connection *connection, const char *path, const char *interface,
                        const char *method, sd_bus_message **ret);

/*
 * Sends it and waits. Returns 0; -EREMOTEIO when the daemon refuses, with one of its own errors; or
 * another negative errno when it cannot be asked. On failure with a sentence in *ret_sentence,
 * which the caller frees (NULL for want of memory). ret_reply may be NULL.
 */
int connection_ask(Connection *connection, sd_bus_message *call, sd_bus_message **ret_reply,
                   char **ret_sentence);

/* Of such an error: tlobd is there, and has refused, or it was the memory here that did not do. */
bool connection_was_refused(int error);

/* As connection_ask(), but says the sentence itself. */
int connection_send(Connection *connection, sd_bus_message *call, sd_bus_message **ret_reply);

/*
 * Calls a method of the manager, with arguments as in sd_bus_message_append(); says why it fails.
 */
int connection_call(Connection *connection, const char *method, sd_bus_message **ret_reply,
                    const char *types, ...);

/*
 * Say that a reply could not be read, or that arguments could not be sent, or that there is no
 * memory. Return r.
 */
int connection_complain_reply(int r);
int connection_complain_arguments(int r);

#endif
