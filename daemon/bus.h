/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BUS_H
#define BUS_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "binding.h"
#include "cleanup.h"
#include "violation.h"

/*
 * org.tlob1 on D-Bus, as described in dbus/org.tlob1.xml. It translates: what is decided, is decided
 * in the manager.
 */

typedef struct Bus Bus;
struct Manager;

/* The manager is not owned, and must outlive the bus. bus is kept. */
int bus_new(struct Manager *manager, sd_bus *bus, Bus **ret);
Bus *bus_free(Bus *bus);
DEFINE_CLEANUP(Bus, bus_free);

/* Exports the objects. */
int bus_start(Bus *bus, sd_event *event);

/* Takes the name, under which others find them. */
int bus_request_name(Bus *bus);

/* Something is known of a unit now: calls that wait for that go on. Does nothing for a NULL bus. */
void bus_on_unit(Bus *bus, const char *unit);

/* A reload is done: its callers get their answer. Does nothing for a NULL bus. */
void bus_on_reloaded(Bus *bus);

sd_bus *bus_get_connection(Bus *bus);

/* All of these tell who listens, and do nothing for a NULL bus. */
void bus_emit_report(Bus *bus, const Violation *violation);
void bus_emit_binding_added(Bus *bus, const Binding *binding);
void bus_emit_binding_removed(Bus *bus, const Binding *binding);
void bus_emit_binding_changed(Bus *bus, const Binding *binding);
void bus_emit_reloading(Bus *bus, bool active);
void bus_emit_records_lost(Bus *bus, uint64_t n);

#endif
