/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BUS_INTERNAL_H
#define BUS_INTERNAL_H

#include <systemd/sd-bus.h>

#include "bus/bus.h"
#include "manager/manager.h"

/* What the bus*.c files share. */

typedef struct BusAuthorization BusAuthorization;
typedef struct BusLender BusLender;
typedef struct BusReload BusReload;
typedef struct BusWait BusWait;

#define BUS_CLIENTS_MAX 256 /* as many connections as a user has by default */
#define BUS_CALLERS_MAX 64

/* A connection. */
typedef struct BusClient {
        char *name; /* NULL: this place is free */
        char *caller;
        bool is_owner;
        uint64_t since_usec;
} BusClient;

/* Who calls: a user, with all his connections; of an owner, each counts by itself. */
typedef struct BusCaller {
        char *name;        /* NULL: this place is free */
        int64_t left_usec; /* for how long it may keep us busy */
        uint64_t since_usec;
} BusCaller;

typedef struct BusLimits {
        BusClient clients[BUS_CLIENTS_MAX];
        BusCaller callers[BUS_CALLERS_MAX];
        BusCaller *caller;       /* whose call is being answered */
        uint64_t unsent_answers; /* bytes of the answers that the bus has not taken, about */
        uint64_t long_since_usec;
        uint64_t length; /* as last seen */
        bool stall_is_logged;
        bool closing; /* calls are not answered any more */
        uint64_t n_unsent;
        uint64_t n_refused;
} BusLimits;

struct Bus {
        Manager *manager;
        sd_bus *bus;
        sd_bus *asking;                   /* see bus_get_asking_connection(); can be the same */
        BusAuthorization *authorizations; /* questions to polkit that are under way */
        BusWait *waits;                   /* calls that wait for a unit or a file */
        sd_bus_message *authorized;       /* the call that runs again, if its sender may */
        BusReload *reloads;               /* callers of Reload() that wait for their answer */
        BusLender *lender;                /* NULL: nothing is measured for others */
        BusLimits limits;
        const Binding
                *books_of; /* of which the books have been read during this event; NULL: of none */
        Statistics books;
};

#define BUS_ANSWER_SIZE_MAX (8U << 20) /* bytes */

/* Looks at each message before anybody else does. */
int bus_limits_start(Bus *bus);
void bus_limits_done(Bus *bus);

/* A call that has waited goes on: what it takes is its caller's again. */
void bus_limits_resume(Bus *bus, sd_bus_message *m);

typedef struct BusUnsent {
        uint64_t signals;
        uint64_t answers;
} BusUnsent;

/* What was not sent, because the bus did not take it, or because a caller asked too much. */
BusUnsent bus_get_unsent(const Bus *bus);

/*
 * May a signal be sent (for_report: one of those that can come without end)? Counts one that may
 * not.
 */
bool bus_has_room(Bus *bus, bool for_report);

/* What the manager tells its observer; userdata is the bus. */
void bus_emit_report(const Violation *violation, void *userdata);
void bus_emit_tolerance_changed(const Binding *binding, void *userdata);
void bus_emit_binding_added(const Binding *binding, void *userdata);
void bus_emit_binding_removed(const Binding *binding, void *userdata);
void bus_emit_binding_changed(const Binding *binding, void *userdata);
void bus_on_unit(const char *unit, void *userdata);
void bus_on_file(unsigned question, void *userdata);
void bus_on_reloading(bool active, void *userdata);
void bus_on_reloaded(void *userdata);
void bus_after_event(void *userdata);

/* Exports /org/tlob1. */
int bus_export_manager(Bus *bus);

/* Any property there; userdata is the bus. */
int bus_get_manager_property(sd_bus *b, const char *path, const char *interface,
                             const char *property, sd_bus_message *reply, void *userdata,
                             sd_bus_error *error);

/* Exports /org/tlob1/binding/.... */
int bus_export_bindings(Bus *bus);

/* What was counted, as any property there; userdata is the binding. */
int bus_get_binding_books(sd_bus *b, const char *path, const char *interface, const char *property,
                          sd_bus_message *reply, void *userdata, sd_bus_error *error);

/* The object path of a binding; owned by the caller. */
int bus_binding_path(const Binding *binding, char **ret);

/*
 * Sets a D-Bus error for a manager's errno and sentence. Returns a negative errno, for the handler.
 */
int bus_set_error(sd_bus_error *error, int r, const char *sentence);

/*
 * May the sender do that? Returns 1: yes, go on. 0: polkit is being asked, and handler is called
 * with the bus for the same message again when it has answered; return 1 now. Negative: no, with
 * error set.
 */
int bus_authorize(Bus *bus, sd_bus_message *m, const char *action, sd_bus_message_handler_t handler,
                  sd_bus_error *error);
void bus_authorizations_free(Bus *bus);

/*
 * The user who sent it, and the process that has connected (ret_pid: may be NULL), as the bus or
 * the kernel knows them: the bus is waited for. Fails if the sender is gone.
 */
int bus_get_sender(Bus *bus, sd_bus_message *m, uid_t *ret_user, pid_t *ret_pid);

/* Root, and on a user's bus that user: he may do all. */
bool bus_is_owner(const Bus *bus, uid_t user);

/*
 * Is anything known of that unit (NULL: of none)? Returns 1: go on. 0: systemd is asked, and
 * handler runs again for the same message when it has answered; return 1 now. Or a negative errno.
 * The sender is known to be allowed what it asks for.
 */
int bus_wait_for_unit(Bus *bus, sd_bus_message *m, const char *unit,
                      sd_bus_message_handler_t handler);

/* The same when that question about a file is answered. */
int bus_wait_for_file(Bus *bus, sd_bus_message *m, unsigned question,
                      sd_bus_message_handler_t handler);
void bus_waits_free(Bus *bus);

/* Reload() of the manager's interface. */
int bus_method_reload(sd_bus_message *m, void *userdata, sd_bus_error *error);
void bus_reloads_free(Bus *bus);

/* Exports org.tlob1.Lender at /org/tlob1. */
int bus_lender_start(Bus *bus);
void bus_lender_done(Bus *bus);

/* Reads the keys of a binding, an a{sv}. Returns 0, or a negative errno with error set. */
int bus_read_properties(sd_bus_message *m, Binding *binding, sd_bus_error *error);

/* Verify() of the manager's interface. */
int bus_method_verify(sd_bus_message *m, void *userdata, sd_bus_error *error);

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
