/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Calls about a unit of which nothing is known yet: they are kept, systemd is asked, and their handler
 * runs a second time when it has answered. Meanwhile nothing waits.
 */

#include "bus-internal.h"

struct BusWait {
        sd_bus_message *message; /* the call */
        char *unit;
        sd_bus_message_handler_t handler;
        BusWait *next;
};

static BusWait *wait_free(BusWait *wait) {
        if (!wait)
                return NULL;

        sd_bus_message_unref(wait->message);
        free(wait->unit);
        free(wait);
        return NULL;
}
DEFINE_CLEANUP(BusWait, wait_free);

void bus_waits_free(Bus *bus) {
        while (bus->waits) {
                BusWait *wait = bus->waits;

                bus->waits = wait->next;
                wait_free(wait);
        }
}

int bus_wait_for_unit(Bus *bus, sd_bus_message *m, const char *unit,
                      sd_bus_message_handler_t handler) {
        _cleanup_(wait_freep) BusWait *wait = NULL;
        Units *units = bus->manager->units;
        _cleanup_free_ char *name = NULL;
        int r;

        if (!unit || !units)
                return 1;
        name = manager_unit_to_ask(unit);
        if (!name)
                return -ENOMEM;
        if (units_was_asked(units, name))
                return 1;

        wait = calloc(1, sizeof(*wait));
        if (!wait)
                return -ENOMEM;
        *wait = (BusWait){
                .message = sd_bus_message_ref(m),
                .unit = TAKE_PTR(name),
                .handler = handler,
                .next = bus->waits,
        };
        r = units_watch(units, wait->unit);
        if (r < 0)
                return r;
        bus->waits = TAKE_PTR(wait);
        return 0;
}

static void run_again(Bus *bus, const BusWait *wait) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = sd_bus_message_rewind(wait->message, true);
        if (r >= 0)
                r = wait->handler(wait->message, bus, &error);
        if (r < 0 || sd_bus_error_is_set(&error))
                (void) sd_bus_reply_method_errno(wait->message, r, &error);
        units_unwatch(bus->manager->units, wait->unit);
}

void bus_on_unit(Bus *bus, const char *unit) {
        if (!bus)
                return;
        for (BusWait **p = &bus->waits; *p;) {
                _cleanup_(wait_freep) BusWait *wait = NULL;

                if (!streq((*p)->unit, unit)) {
                        p = &(*p)->next;
                        continue;
                }
                wait = *p;
                *p = wait->next;
                run_again(bus, wait);
        }
}
