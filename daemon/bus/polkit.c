/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Who may change something: root always, others if polkit says so. polkit may ask a person for a
 * password and take minutes, so nothing waits: the call is kept, and its handler runs a second time
 * when the answer is there. Where there is no polkit, only root may. On the bus of a user there is
 * none: the user may, and root.
 */

#include "bus/internal.h"
#include "tlob-bus.h"

#define POLKIT_TIMEOUT_USEC (120 * UINT64_C(1000000))

#define POLKIT_ALLOW_INTERACTION 1U

/* Each is a call that is kept, and anybody can make some. */
#define AUTHORIZATIONS_MAX          256
#define AUTHORIZATIONS_PER_USER_MAX 16

struct BusAuthorization {
        Bus *bus;
        sd_bus_message *message; /* the call that waits */
        uid_t user;              /* who called */
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

bool bus_is_owner(const Bus *bus, uid_t user) {
        return user == 0 ||
               (manager_get_scope(bus->manager) == RUNTIME_SCOPE_USER && user == geteuid());
}

static int refuse_other(sd_bus_error *error) {
        return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED,
                                 "Access denied: this tlobd is for user %u, and only that user and "
                                 "root may do this",
                                 geteuid());
}

static int refuse(sd_bus_error *error, const char *action) {
        return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED,
                                 "Access denied: this requires root, or permission from polkit "
                                 "for %s",
                                 action);
}

static BusAuthorization *authorization_find(Bus *bus, sd_bus_message *m) {
        BusAuthorization *a;

        for (a = bus->authorizations; a; a = a->next)
                if (a->message == m)
                        break;
        return a;
}

/* May that user have one more call that waits? */
static bool has_room(const Bus *bus, uid_t user) {
        size_t n = 0, n_of_user = 0;

        for (const BusAuthorization *a = bus->authorizations; a; a = a->next) {
                n++;
                n_of_user += a->user == user;
        }
        return n < AUTHORIZATIONS_MAX && n_of_user < AUTHORIZATIONS_PER_USER_MAX;
}

/* The uid comes from the kernel, through the bus daemon or the socket. */
int bus_get_sender(Bus *bus, sd_bus_message *m, uid_t *ret_user, pid_t *ret_pid) {
        _cleanup_(sd_bus_creds_unrefp) sd_bus_creds *creds = NULL;
        uint64_t mask = SD_BUS_CREDS_EUID | (ret_pid ? SD_BUS_CREDS_PID : 0);
        const char *sender = sd_bus_message_get_sender(m);
        int r;

        /* Without a bus daemon the sender has no name, and the kernel knows who it is. */
        r = sender ? sd_bus_get_name_creds(bus->asking, sender, mask, &creds)
                   : sd_bus_query_sender_creds(m, mask, &creds);
        if (r >= 0)
                r = sd_bus_creds_get_euid(creds, ret_user);
        if (r >= 0 && ret_pid)
                r = sd_bus_creds_get_pid(creds, ret_pid);
        return r;
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        _cleanup_(authorization_freep) BusAuthorization *a = userdata;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int allowed = 0, r;

        if (!sd_bus_message_is_method_error(reply, NULL) &&
            sd_bus_message_enter_container(reply, 'r', "bba{ss}") >= 0 &&
            sd_bus_message_read(reply, "b", &allowed) >= 0)
                a->allowed = allowed;

        bus_limits_resume(a->bus, a->message);
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

        r = sd_bus_message_new_method_call(a->bus->asking, &m, "org.freedesktop.PolicyKit1",
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
        return sd_bus_call_async(a->bus->asking, &a->slot, m, on_answer, a, POLKIT_TIMEOUT_USEC);
}

int bus_authorize(Bus *bus, sd_bus_message *m, const char *action, sd_bus_message_handler_t handler,
                  sd_bus_error *error) {
        _cleanup_(authorization_freep) BusAuthorization *a = NULL;
        const BusAuthorization *known;
        uid_t user;
        int r;

        if (m == bus->authorized)
                return 1;
        known = authorization_find(bus, m);
        if (known)
                return known->allowed ? 1 : refuse(error, action);

        r = bus_get_sender(bus, m, &user, NULL);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return refuse(error, action);
        if (bus_is_owner(bus, user))
                return 1;
        if (manager_get_scope(bus->manager) == RUNTIME_SCOPE_USER)
                return refuse_other(error);
        /* Without a bus daemon there is nobody to ask, and no name to ask for. */
        if (!sd_bus_message_get_sender(m))
                return refuse(error, action);

        if (!has_room(bus, user))
                return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                        "Too many calls wait for polkit; try again later");

        a = calloc(1, sizeof(*a));
        if (!a)
                return -ENOMEM;
        *a = (BusAuthorization) {
                .bus = bus,
                .message = sd_bus_message_ref(m),
                .user = user,
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
