/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BUS_BUS_H
#define BUS_BUS_H

#include <systemd/sd-bus.h>

#include "base/cleanup.h"
#include "manager/manager.h"

/*
 * org.tlob1 on D-Bus, as described in dbus/org.tlob1.xml. It translates: what is decided, is
 * decided in the manager, which it observes.
 */

typedef struct Bus Bus;

/*
 * Connects to the system bus, or to that of the user whose services the manager is for, unless
 * another tlobd is there. The manager, which has its loop, must outlive the bus. Logs.
 */
int bus_open(Manager *manager, Bus **ret);

/* The same over that connection, which is kept. Does not log. */
int bus_new(Manager *manager, sd_bus *connection, Bus **ret);

/* Nothing is measured for the tlobd of users any more; each of them is told. */
void bus_end_lending(Bus *bus);

/* Sends what is still to be sent, if the bus takes it soon. */
Bus *bus_free(Bus *bus);
DEFINE_CLEANUP(Bus, bus_free);

/* On which others call us, and hear of what we have to tell. */
sd_bus *bus_get_connection(Bus *bus);

/*
 * On which we ask others. With bus_open() that is another one: whoever calls us and does not read
 * the answers stops the first.
 */
sd_bus *bus_get_asking_connection(Bus *bus);

#endif
