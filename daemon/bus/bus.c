/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The connection to the bus: what is exported on it, the name, and the manager's plain signals. The
 * objects are in bus/manager.c and bus/binding.c, authorisation is in bus/polkit.c, reports are in
 * bus/report.c, the tlobd of users in bus/lender.c. Nothing is decided in any of them: that is the
 * manager's part.
 */

#include "bus/bus.h"

#include "bus/internal.h"
#include "log.h"
#include "tlob-bus.h"

#define FLUSH_USEC      UINT64_C(1000000)
#define FLUSH_STEP_USEC UINT64_C(1000)
#define TURN_MESSAGES   16

#define SYSTEM_BUS_ADDRESS "unix:path=/run/dbus/system_bus_socket" /* libsystemd's */

int bus_set_error(sd_bus_error *error, int r, const char *sentence) {
        static const struct {
                int error;
                const char *name;
        } names[] = {
                { ENXIO, TLOB_ERROR_NO_SUCH_BINDING },  { EEXIST, TLOB_ERROR_BINDING_EXISTS },
                { ESRCH, TLOB_ERROR_NO_SUCH_SYMBOL },   { EOPNOTSUPP, TLOB_ERROR_NOT_SUPPORTED },
                { EPERM, SD_BUS_ERROR_FAILED },         { ENOMEM, SD_BUS_ERROR_NO_MEMORY },
                { EROFS, SD_BUS_ERROR_FAILED },         { ENOSPC, SD_BUS_ERROR_FAILED },
                { EIO, SD_BUS_ERROR_FAILED },           { EDQUOT, SD_BUS_ERROR_LIMITS_EXCEEDED },
                { EACCES, SD_BUS_ERROR_ACCESS_DENIED },
        };
        const char *name = TLOB_ERROR_INVALID_BINDING;

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (names[i].error == -r)
                        name = names[i].name;
        return sd_bus_error_set(error, name, sentence ?: strerror(-r));
}

/*
 * What is still to be sent, if the bus takes it soon; sd_bus_flush() waits for as long as it does
 * not.
 */
static void flush_briefly(Bus *bus) {
        uint64_t n = 0, tries = FLUSH_USEC / FLUSH_STEP_USEC;

        bus->limits.closing = true;
        while (tries-- > 0 && sd_bus_get_n_queued_write(bus->bus, &n) >= 0 && n > 0) {
                int r = sd_bus_process(bus->bus, NULL);

                if (r == 0)
                        r = sd_bus_wait(bus->bus, FLUSH_STEP_USEC);
                if (r < 0)
                        return;
        }
}

/*
 * A message that sd-bus has read while somebody waited for another one is handed on by a timer that
 * it sets anew before each turn of the loop; an event that is always there is older than that, and
 * comes first. And it reads nothing in a turn in which it could write. A few messages a turn are
 * enough to get on.
 */
static bool waits_for_turn(sd_bus *connection) {
        uint64_t n_read, n_write;

        return sd_bus_get_n_queued_read(connection, &n_read) >= 0 &&
               sd_bus_get_n_queued_write(connection, &n_write) >= 0 && n_read + n_write > 0;
}

static void take_turn_of(Bus *bus, sd_bus *connection) {
        for (unsigned i = 0; i < TURN_MESSAGES && waits_for_turn(connection); i++) {
                if (sd_bus_process(connection, NULL) <= 0)
                        break;
                bus_after_event(bus);
        }
}

static void take_turn(void *userdata) {
        Bus *bus = userdata;

        take_turn_of(bus, bus->bus);
        if (bus->asking != bus->bus)
                take_turn_of(bus, bus->asking);
}

/* Has nobody the name? Returns 0, or -EEXIST. Waits for the bus. */
static int check_name(sd_bus *bus) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int has_owner = 0, r;

        r = sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                               "org.freedesktop.DBus", "NameHasOwner", NULL, &reply, "s",
                               TLOB_BUS_NAME);
        if (r >= 0)
                r = sd_bus_message_read(reply, "b", &has_owner);
        /* What is wrong is found when the name is taken. */
        return r >= 0 && has_owner ? -EEXIST : 0;
}

/* Under which others find the objects. */
static int request_name(void *userdata) {
        Bus *bus = userdata;
        int r;

        r = sd_bus_request_name(bus->bus, TLOB_BUS_NAME, 0);
        if (r < 0)
                return log_error_errno(r, "Failed to acquire the name org.tlob1 on the bus: %m");
        return 0;
}

static void emit_records_lost(uint64_t n, void *userdata) {
        Bus *bus = userdata;
        int r;

        if (!bus_has_room(bus, true))
                return;
        r = sd_bus_emit_signal(bus->bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "RecordsLost",
                               "t", n);
        if (r < 0)
                log_warning_errno(r, "Failed to send a signal about lost records, ignoring: %m");
}

static const ManagerObserver observer = {
        .report = bus_emit_report,
        .records_lost = emit_records_lost,
        .tolerance_changed = bus_emit_tolerance_changed,
        .binding_added = bus_emit_binding_added,
        .binding_removed = bus_emit_binding_removed,
        .binding_changed = bus_emit_binding_changed,
        .reloading = bus_on_reloading,
        .unit_known = bus_on_unit,
        .file_known = bus_on_file,
        .reloaded = bus_on_reloaded,
        .ready = request_name,
        .event_done = bus_after_event,
        .take_turn = take_turn,
};

/*
 * The bus holds back what others broadcast in the name of systemd; but everybody may address a
 * signal to one connection, and sd-bus does not know who has a name. What is meant for us is
 * broadcast.
 */
static int ignore_addressed_signal(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return sd_bus_message_is_signal(m, NULL, NULL) > 0 && sd_bus_message_get_destination(m);
}

static int attach(Bus *bus, sd_bus *connection) {
        int r;

        r = sd_bus_add_filter(connection, NULL, ignore_addressed_signal, NULL);
        if (r < 0)
                return r;
        /* At the very end systemd is asked why, and what is reported as the bindings go is sent. */
        r = sd_bus_set_close_on_exit(connection, false);
        if (r < 0)
                return r;
        return sd_bus_attach_event(connection, manager_get_event(bus->manager),
                                   SD_EVENT_PRIORITY_NORMAL);
}

static int start(Bus *bus) {
        int r;

        r = bus_limits_start(bus);
        if (r < 0)
                return r;
        r = bus_export_manager(bus);
        if (r < 0)
                return r;
        r = bus_export_bindings(bus);
        if (r < 0)
                return r;
        if (manager_get_scope(bus->manager) == RUNTIME_SCOPE_SYSTEM)
                r = bus_lender_start(bus);
        if (r < 0)
                return r;
        return attach(bus, bus->bus);
}

static int new_with(Manager *manager, sd_bus *connection, sd_bus *asking, Bus **ret) {
        _cleanup_(bus_freep) Bus *bus = NULL;
        int r;

        bus = calloc(1, sizeof(*bus));
        if (!bus)
                return -ENOMEM;
        *bus = (Bus) {
                .manager = manager,
                .bus = sd_bus_ref(connection),
                .asking = sd_bus_ref(asking),
        };
        r = start(bus);
        if (r >= 0 && asking != connection)
                r = attach(bus, asking);
        if (r < 0)
                return r;
        manager_observe(manager, &observer, bus);
        *ret = TAKE_PTR(bus);
        return 0;
}

int bus_new(Manager *manager, sd_bus *connection, Bus **ret) {
        return new_with(manager, connection, connection, ret);
}

/* As sd_bus_open_system(), but messages with file descriptors do not get here. */
static int connect_system_bus(sd_bus **ret) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        int r;

        r = sd_bus_new(&bus);
        if (r < 0)
                return r;
        r = sd_bus_set_address(bus, secure_getenv("DBUS_SYSTEM_BUS_ADDRESS") ?: SYSTEM_BUS_ADDRESS);
        if (r < 0)
                return r;
        r = sd_bus_set_bus_client(bus, true);
        if (r < 0)
                return r;
        /* No method accepts any: they would only use up ours, for as long as a call waits. */
        r = sd_bus_negotiate_fds(bus, false);
        if (r < 0)
                return r;
        r = sd_bus_start(bus);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}

static int connect_bus(RuntimeScope scope, sd_bus **ret) {
        int r;

        /* On that of a user, nobody but the user could use up our file descriptors. */
        r = scope == RUNTIME_SCOPE_USER ? sd_bus_open_user(ret) : connect_system_bus(ret);
        if (r < 0)
                return r;
        /* Without a bus nobody can reach us: systemd starts us again, and the bus is back then. */
        return sd_bus_set_exit_on_disconnect(*ret, true);
}

int bus_open(Manager *manager, Bus **ret) {
        _cleanup_(sd_bus_unrefp) sd_bus *connection = NULL, *asking = NULL;
        RuntimeScope scope = manager_get_scope(manager);
        int r;

        r = connect_bus(scope, &connection);
        if (r >= 0)
                r = connect_bus(scope, &asking);
        if (r < 0)
                return log_error_errno(r, "Failed to connect to the %s bus: %m",
                                       scope == RUNTIME_SCOPE_USER ? "user" : "system");
        /* Before anything is read or said: another one is at work. */
        r = check_name(connection);
        if (r < 0)
                return log_error_errno(r, "Another tlobd owns the name org.tlob1 on the bus.");
        r = new_with(manager, connection, asking, ret);
        if (r < 0)
                return log_error_errno(r, "Failed to export the bus objects: %m");
        return 0;
}

Bus *bus_free(Bus *bus) {
        if (!bus)
                return NULL;

        bus_lender_done(bus);
        manager_observe(bus->manager, NULL, NULL);
        bus_reloads_free(bus);
        bus_waits_free(bus);
        bus_authorizations_free(bus);
        flush_briefly(bus);
        sd_bus_close_unref(bus->bus);
        sd_bus_close_unref(bus->asking);
        bus_limits_done(bus);
        free(bus);
        return NULL;
}

sd_bus *bus_get_connection(Bus *bus) {
        return bus->bus;
}

sd_bus *bus_get_asking_connection(Bus *bus) {
        return bus->asking;
}
