/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Reload(): the caller gets its answer when the new configuration is applied, which takes as long
 * as systemd takes to answer about its units. Calls are kept until then. One that comes while a
 * reload is going on may be about files that this reload has seen already: it waits for the next
 * one, and all that wait for that share it.
 */

#include "bus/internal.h"
#include "log.h"
#include "tlob-bus.h"

struct BusReload {
        sd_bus_message *message;
        bool next; /* it came while a reload was going on */
        BusReload *below;
};

static void reload_pop(BusReload **p) {
        BusReload *reload = *p;

        *p = reload->below;
        sd_bus_message_unref(reload->message);
        free(reload);
}

void bus_reloads_free(Bus *bus) {
        while (bus->reloads)
                reload_pop(&bus->reloads);
}

static int reload_push(Bus *bus, sd_bus_message *m, bool next) {
        BusReload *reload = calloc(1, sizeof(*reload));

        if (!reload)
                return -ENOMEM;
        *reload = (BusReload) {
                .message = sd_bus_message_ref(m),
                .next = next,
                .below = bus->reloads,
        };
        bus->reloads = reload;
        return 0;
}

static int append_failed(sd_bus_message *reply, const BindingTable *bindings) {
        int r;

        r = sd_bus_message_open_container(reply, 'a', "(ss)");
        if (r < 0)
                return r;
        for (size_t i = 0; i < bindings->n; i++) {
                const Binding *binding = bindings->items[i];

                if (binding->measurement.state != BINDING_FAILED)
                        continue;
                r = sd_bus_message_append(reply, "(ss)", binding->name,
                                          binding->measurement.reason ?: "");
                if (r < 0)
                        return r;
        }
        return sd_bus_message_close_container(reply);
}

static int answer(Bus *bus, sd_bus_message *m) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r;

        if (manager_reload_error(bus->manager) < 0)
                return sd_bus_reply_method_errorf(
                        m, SD_BUS_ERROR_FAILED,
                        "The configuration could not be read (%s); all bindings stay as they "
                        "were. See the log of tlobd",
                        strerror(-manager_reload_error(bus->manager)));
        r = sd_bus_message_new_method_return(m, &reply);
        if (r < 0)
                return r;
        r = append_failed(reply, manager_bindings(bus->manager));
        if (r < 0)
                return r;
        return sd_bus_send(NULL, reply, NULL);
}

/*
 * The next one can begin before all is known that the one before it waits for: both end then.
 */
void bus_on_reloading(bool active, void *userdata) {
        Bus *bus = userdata;
        int r;

        for (BusReload *reload = bus->reloads; active && reload; reload = reload->below)
                reload->next = false;
        if (!bus_has_room(bus, false))
                return;
        r = sd_bus_emit_signal(bus->bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Reloading",
                               "b", active);
        if (r < 0)
                log_warning_errno(r, "Failed to send a signal about reloading, ignoring: %m");
}

void bus_on_reloaded(void *userdata) {
        Bus *bus = userdata;

        for (BusReload **p = &bus->reloads; *p;) {
                BusReload *reload = *p;
                int r;

                if (reload->next) {
                        p = &reload->below;
                        continue;
                }
                r = answer(bus, reload->message);
                if (r < 0)
                        r = sd_bus_reply_method_errno(reload->message, r, NULL);
                if (r < 0)
                        log_warning_errno(r, "Failed to answer a call of Reload, ignoring: %m");
                reload_pop(p);
        }
}

int bus_method_reload(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Bus *bus = userdata;
        int r;

        r = bus_authorize(bus, m, TLOB_ACTION_MANAGE_BINDINGS, bus_method_reload, error);
        if (r <= 0)
                return r < 0 ? r : 1;

        manager_forgive(bus->manager);
        r = manager_reload(bus->manager);
        if (r < 0 && manager_reload_error(bus->manager) == 0)
                return r;
        if (r <= 0)
                return answer(bus, m);
        r = reload_push(bus, m, r > 1);
        return r < 0 ? r : 1;
}
