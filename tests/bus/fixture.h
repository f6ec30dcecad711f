/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "bus/bus.h"
#include "manager/manager.h"

/*
 * A manager with a fake back end and a configuration of its own, and a client on the other end of a
 * socket pair. Everything runs in this process; whoever waits turns both sides.
 */

typedef struct Fixture {
        char directory[32];
        char *directories[3];
        Manager *manager;
        Bus *bus;
        sd_bus *client;
} Fixture;

/* For cmocka: *state is a Fixture, with nothing configured. */
int fixture_setup(void **state);

/* The same, with that text in tlobd.conf from the beginning. */
int fixture_setup_configured(void **state, const char *daemon_config);
int fixture_teardown(void **state);

/* As the daemon does it at its end. */
void fixture_stop(Fixture *fixture);

/* Writes a file below the first directory (as /etc/tlob) or the second (as /run/tlob). */
void fixture_write(Fixture *fixture, unsigned directory, const char *name, const char *text);

/* Calls a method; types (NULL: none) and what follows are as for sd_bus_message_append(). */
int fixture_call(Fixture *fixture, const char *path, const char *interface, const char *member,
                 sd_bus_error *error, sd_bus_message **ret, const char *types, ...);

/* Callers may keep the daemon busy for some time only; now they have all of it again. */
void fixture_forgive_callers(Fixture *fixture);

/* Turns both sides until nothing is left to do. */
void fixture_run(Fixture *fixture);

#endif
