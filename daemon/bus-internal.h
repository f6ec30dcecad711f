/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BUS_INTERNAL_H
#define BUS_INTERNAL_H

#include <systemd/sd-bus.h>

#include "bus.h"
#include "manager.h"

/* What the bus*.c files share. */

typedef struct BusAuthorization BusAuthorization;
typedef struct BusReload BusReload;
typedef struct BusWait BusWait;

struct Bus {
        Manager *manager;
        sd_bus *bus;
        BusAuthorization *authorizations; /* questions to polkit that are under way */
        BusWait *waits;                   /* calls that wait for what systemd says of a unit */
        BusReload *reloads;               /* callers of Reload() that wait for their answer */
};

/* Exports /org/tlob1. */
int bus_export_manager(Bus *bus);

/* Exports /org/tlob1/binding/.... */
int bus_export_bindings(Bus *bus);

/* The object path of a binding; owned by the caller. */
int bus_binding_path(const Binding *binding, char **ret);

/* Sets a D-Bus error for a manager's errno and sentence. Returns a negative errno, for the handler. */
int bus_set_error(sd_bus_error *error, int r, const char *sentence);

/*
 * May the sender do that? Returns 1: yes, go on. 0: polkit is being asked, and handler is called with
 * the bus for the same message again when it has answered; return 1 now. Negative: no, with error set.
 */
int bus_authorize(Bus *bus, sd_bus_message *m, const char *action, sd_bus_message_handler_t handler,
                  sd_bus_error *error);
void bus_authorizations_free(Bus *bus);

/*
 * Is anything known of that unit (NULL: of none)? Returns 1: go on. 0: systemd is asked, and handler
 * runs again for the same message when it has answered; return 1 now. Or a negative errno.
 */
int bus_wait_for_unit(Bus *bus, sd_bus_message *m, const char *unit,
                      sd_bus_message_handler_t handler);
void bus_waits_free(Bus *bus);

/* Reload() of the manager's interface. */
int bus_method_reload(sd_bus_message *m, void *userdata, sd_bus_error *error);
void bus_reloads_free(Bus *bus);

/* Appends the details of a report, an a{sv}. */
int bus_append_details(sd_bus_message *m, const Violation *violation);

/* Appends a violation with the arguments of its signal by name, an a{sv}. */
int bus_append_violation(sd_bus_message *m, const Violation *violation);

/*
 * Calls that both interfaces have, with their arguments read. handler is what bus_authorize() calls
 * again; its userdata is the bus.
 */
int bus_remove_binding(Bus *bus, sd_bus_message *m, const char *name, uint64_t flags,
                       sd_bus_message_handler_t handler, sd_bus_error *error);
int bus_set_budget(Bus *bus, sd_bus_message *m, const char *name, uint64_t nsec, uint64_t flags,
                   sd_bus_message_handler_t handler, sd_bus_error *error);

#endif
