/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Calls about a unit of which nothing is known yet, or about a file that does not answer at once:
 * they are kept, and their handler runs a second time when systemd, or the file system, has
 * answered. Meanwhile nothing waits. Whoever needs permission has got it before the first question.
 */

#include "bus/internal.h"

struct BusWait {
        sd_bus_message *message; /* the call */
        char *unit;              /* NULL: it waits for a file */
        unsigned question;       /* about the file */
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
        int r;

        wait = calloc(1, sizeof(*wait));
        if (!wait)
                return -ENOMEM;
        r = manager_ask_unit(bus->manager, unit, &wait->unit);
        if (r != 0)
                return r;
        wait->message = sd_bus_message_ref(m);
        wait->handler = handler;
        wait->next = bus->waits;
        bus->waits = TAKE_PTR(wait);
        return 0;
}

int bus_wait_for_file(Bus *bus, sd_bus_message *m, unsigned question,
                      sd_bus_message_handler_t handler) {
        BusWait *wait = calloc(1, sizeof(*wait));

        if (!wait)
                return -ENOMEM;
        *wait = (BusWait) {
                .message = sd_bus_message_ref(m),
                .question = question,
                .handler = handler,
                .next = bus->waits,
        };
        bus->waits = wait;
        return 0;
}

static void run_again(Bus *bus, const BusWait *wait) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        bus_limits_resume(bus, wait->message);
        bus->authorized = wait->message;
        r = sd_bus_message_rewind(wait->message, true);
        if (r >= 0)
                r = wait->handler(wait->message, bus, &error);
        if (r < 0 || sd_bus_error_is_set(&error))
                (void) sd_bus_reply_method_errno(wait->message, r, &error);
        bus->authorized = NULL;
}

void bus_on_unit(const char *unit, void *userdata) {
        Bus *bus = userdata;

        for (BusWait **p = &bus->waits; *p;) {
                _cleanup_(wait_freep) BusWait *wait = NULL;

                if (!(*p)->unit || !streq((*p)->unit, unit)) {
                        p = &(*p)->next;
                        continue;
                }
                wait = *p;
                *p = wait->next;
                run_again(bus, wait);
                manager_release_unit(bus->manager, wait->unit);
        }
}

/* A handler may come to wait again, for another question: it is not called twice. */
static BusWait *take_wait(Bus *bus, unsigned question) {
        for (BusWait **p = &bus->waits; *p; p = &(*p)->next)
                if (!(*p)->unit && (*p)->question == question) {
                        BusWait *wait = *p;

                        *p = wait->next;
                        return wait;
                }
        return NULL;
}

void bus_on_file(unsigned question, void *userdata) {
        Bus *bus = userdata;
        BusWait *found;

        while ((found = take_wait(bus, question))) {
                _cleanup_(wait_freep) BusWait *wait = found;

                run_again(bus, wait);
        }
}
