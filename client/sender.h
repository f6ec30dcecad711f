/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SENDER_H
#define SENDER_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

/*
 * Who a signal is from. A match by a well-known name holds for what the bus broadcasts; but
 * everybody may address a signal to one connection, and sd-bus does not know who has the name: it
 * takes such a signal for one that matches.
 */

/* It is from the bus itself. */
bool sender_is_bus(sd_bus_message *m);

/* The owner of the name "org.tlob1", as last asked for. */
typedef struct Sender {
        char *owner; /* NULL: not known */
} Sender;

void sender_done(Sender *sender);

/* It is from tlobd. When the last owner has not sent it, asks the bus who that is, and waits. */
bool sender_is_tlobd(Sender *sender, sd_bus_message *m);

#endif
