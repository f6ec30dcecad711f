/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef RESTART_H
#define RESTART_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "tlob-bus.h"

/* The signal that tlobd has come or gone, for sd_bus_add_match(). */
#define RESTART_MATCH                                                                              \
        "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"                \
        "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" TLOB_BUS_NAME "'"

/*
 * Waits while tlobd is not on the bus because systemd is starting it. Returns 1 when it is there, 0
 * if systemd does not start it or cannot be asked, -ETIMEDOUT if that takes longer than anybody
 * wants to wait, or another negative errno when the bus is gone.
 */
int restart_wait(sd_bus *bus);

/* Does systemd say that it has no unit of tlobd? */
bool restart_unit_is_missing(sd_bus *bus);

#endif
