/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Who may change something: root always, others if polkit says so. polkit may ask a person for a
 * password and take minutes, so nothing waits: the call is kept, and its handler runs a second time
 * when the answer is there. Where there is no polkit, only root may.
 */

#include "bus-internal.h"
#include "tlob-bus.h"

#define POLKIT_TIMEOUT_USEC (120 * UINT64_C(1000000))

#define POLKIT_ALLOW_INTERACTION 1U

struct BusAuthorization {
        Bus *bus;
        sd_bus_message *message; /* the call that waits */
        char *action;
        sd_bus_message_handler_t handler;
        sd_bus_slot *slot;
        bool allowed;
        BusAuthorization *next;
};

static BusAuthorization *authorization_free(BusAuthorization *a) {
        if (!a)
                return NULL;

        for (BusAuthorization **p = &a->bus->authorizations; *p; p = &(*p)->next)
                if (*p == a) {
                        *p = a->next;
                        break;
                }
        sd_bus_slot_unref(a->slot);
        sd_bus_message_unref(a->message);
        free(a->action);
        free(a);
        return NULL;
}
DEFINE_CLEANUP(BusAuthorization, authorization_free);

void bus_authorizations_free(Bus *bus) {
        while (bus->authorizations)
                authorization_free(bus->authorizations);
}

static int refuse(sd_bus_error *error, const char *action) {
        return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED,
                                 "You may not do that: it takes root, or polkit's leave for %s",
                                 action);
}

static BusAuthorization *authorization_find(Bus *bus, sd_bus_message *m) {
        BusAuthorization *a;

        for (a = bus->authorizations; a; a = a->next)
                if (a->message == m)
                        break;
        return a;
}

/* The uid comes from the kernel, through the bus daemon or the socket. */
static bool sender_is_root(sd_bus_message *m) {
        _cleanup_(sd_bus_creds_unrefp) sd_bus_creds *creds = NULL;
        uid_t uid;

        return sd_bus_query_sender_creds(m, SD_BUS_CREDS_EUID, &creds) >= 0 &&
               sd_bus_creds_get_euid(creds, &uid) >= 0 && uid == 0;
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        _cleanup_(authorization_freep) BusAuthorization *a = userdata;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int allowed = 0, r;

        if (!sd_bus_message_is_method_error(reply, NULL) &&
            sd_bus_message_enter_container(reply, 'r', "bba{ss}") >= 0 &&
            sd_bus_message_read(reply, "b", &allowed) >= 0)
                a->allowed = allowed;

        r = sd_bus_message_rewind(a->message, true);
        if (r >= 0)
                r = a->handler(a->message, a->bus, &error);
        if (r < 0 || sd_bus_error_is_set(&error))
                (void) sd_bus_reply_method_errno(a->message, r, &error);
        return 1;
}

static int ask(BusAuthorization *a) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int interactive, r;

        interactive = sd_bus_message_get_allow_interactive_authorization(a->message);
        if (interactive < 0)
                return interactive;

        r = sd_bus_message_new_method_call(a->bus->bus, &m, "org.freedesktop.PolicyKit1",
                                           "/org/freedesktop/PolicyKit1/Authority",
                                           "org.freedesktop.PolicyKit1.Authority",
                                           "CheckAuthorization");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                                  sd_bus_message_get_sender(a->message), a->action, 0,
                                  interactive ? POLKIT_ALLOW_INTERACTION : 0U, "");
        if (r < 0)
                return r;
        return sd_bus_call_async(a->bus->bus, &a->slot, m, on_answer, a, POLKIT_TIMEOUT_USEC);
}

int bus_authorize(Bus *bus, sd_bus_message *m, const char *action, sd_bus_message_handler_t handler,
                  sd_bus_error *error) {
        _cleanup_(authorization_freep) BusAuthorization *a = NULL;
        const BusAuthorization *known;
        int r;

        if (sender_is_root(m))
                return 1;

        known = authorization_find(bus, m);
        if (known)
                return known->allowed ? 1 : refuse(error, action);
        /* Without a bus daemon there is nobody to ask, and no name to ask for. */
        if (!sd_bus_message_get_sender(m))
                return refuse(error, action);

        a = calloc(1, sizeof(*a));
        if (!a)
                return -ENOMEM;
        *a = (BusAuthorization){
                .bus = bus,
                .message = sd_bus_message_ref(m),
                .action = strdup(action),
                .handler = handler,
                .next = bus->authorizations,
        };
        bus->authorizations = a;
        if (!a->action)
                return -ENOMEM;

        r = ask(a);
        if (r < 0)
                return r;
        TAKE_PTR(a);
        return 0;
}
