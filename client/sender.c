/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tells the signals of tlobd from those that others address to this connection in its name. */

#include "sender.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "tlob-bus.h"

bool sender_is_bus(sd_bus_message *m) {
        return streq_empty(sd_bus_message_get_sender(m), "org.freedesktop.DBus");
}

void sender_done(Sender *sender) {
        free(sender->owner);
        *sender = (Sender) {};
}

static void find_owner(Sender *sender, sd_bus *bus) {
        sd_bus_creds *creds = NULL;
        const char *owner;

        sender_done(sender);
        if (sd_bus_get_name_creds(bus, TLOB_BUS_NAME, SD_BUS_CREDS_UNIQUE_NAME, &creds) < 0)
                return;
        if (sd_bus_creds_get_unique_name(creds, &owner) >= 0)
                sender->owner = strdup(owner);
        sd_bus_creds_unref(creds);
}

bool sender_is_tlobd(Sender *sender, sd_bus_message *m) {
        const char *from = sd_bus_message_get_sender(m);

        if (!from)
                return false;
        if (!sender->owner || !streq(sender->owner, from))
                find_owner(sender, sd_bus_message_get_bus(m));
        return sender->owner && streq(sender->owner, from);
}
