/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <stdint.h>
#include <systemd/sd-bus.h>

/*
 * How long a Violation takes to a client of the bus. Functions say on standard error what failed.
 */

int signals_open(sd_bus **ret);

/* Called when the client listens: now what is to be reported may begin. */
typedef int (*SignalsReady)(void *userdata);

/*
 * Called for the i-th Violation: so long after its deadline, or after its detection if that is not
 * known.
 */
typedef void (*SignalHandler)(uint64_t ns, unsigned i, void *userdata);

/* Returns when n have come. */
int signals_receive(sd_bus *bus, unsigned n, SignalsReady ready, SignalHandler handler,
                    void *userdata);

#endif
