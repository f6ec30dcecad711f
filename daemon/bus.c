/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The connection to the bus: what is exported on it, the name, and the manager's plain signals. The
 * objects are in bus-manager.c and bus-binding.c, authorisation is in bus-polkit.c, reports are in
 * bus-report.c. Nothing is decided in any of them: that is the manager's part.
 */

#include "bus.h"

#include "bus-internal.h"
#include "log.h"
#include "tlob-bus.h"

int bus_set_error(sd_bus_error *error, int r, const char *sentence) {
        static const struct {
                int error;
                const char *name;
        } names[] = {
                { ENXIO, TLOB_ERROR_NO_SUCH_BINDING }, { EEXIST, TLOB_ERROR_BINDING_EXISTS },
                { ESRCH, TLOB_ERROR_NO_SUCH_SYMBOL },  { EOPNOTSUPP, TLOB_ERROR_NOT_SUPPORTED },
                { EPERM, SD_BUS_ERROR_FAILED },        { ENOMEM, SD_BUS_ERROR_NO_MEMORY },
                { EROFS, SD_BUS_ERROR_FAILED },        { ENOSPC, SD_BUS_ERROR_FAILED },
                { EIO, SD_BUS_ERROR_FAILED },
        };
        const char *name = TLOB_ERROR_INVALID_BINDING;

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (names[i].error == -r)
                        name = names[i].name;
        return sd_bus_error_set(error, name, sentence ?: strerror(-r));
}

int bus_new(Manager *manager, sd_bus *connection, Bus **ret) {
        Bus *bus;

        bus = calloc(1, sizeof(*bus));
        if (!bus)
                return -ENOMEM;
        *bus = (Bus){ .manager = manager, .bus = sd_bus_ref(connection) };
        *ret = bus;
        return 0;
}

Bus *bus_free(Bus *bus) {
        if (!bus)
                return NULL;

        bus_reloads_free(bus);
        bus_waits_free(bus);
        bus_authorizations_free(bus);
        sd_bus_flush_close_unref(bus->bus);
        free(bus);
        return NULL;
}

sd_bus *bus_get_connection(Bus *bus) {
        return bus->bus;
}

int bus_start(Bus *bus, sd_event *event) {
        int r;

        r = bus_export_manager(bus);
        if (r < 0)
                return r;
        r = bus_export_bindings(bus);
        if (r < 0)
                return r;
        return sd_bus_attach_event(bus->bus, event, SD_EVENT_PRIORITY_NORMAL);
}

int bus_request_name(Bus *bus) {
        return sd_bus_request_name(bus->bus, TLOB_BUS_NAME, 0);
}

void bus_emit_reloading(Bus *bus, bool active) {
        int r;

        if (!bus)
                return;
        r = sd_bus_emit_signal(bus->bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Reloading",
                               "b", active);
        if (r < 0)
                log_warning_errno(r, "Failed to send a signal about reloading, ignoring: %m");
}

void bus_emit_records_lost(Bus *bus, uint64_t n) {
        int r;

        if (!bus)
                return;
        r = sd_bus_emit_signal(bus->bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "RecordsLost",
                               "t", n);
        if (r < 0)
                log_warning_errno(r, "Failed to send a signal about lost records, ignoring: %m");
}
