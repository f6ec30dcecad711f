/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * On the system bus anybody can send signals to anybody, also such that look like those of the
 * system's tlobd: who has sent one is looked at here.
 */

#include "delegate/connection.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/sentence.h"
#include "bus-packet.h"
#include "tlob-bus.h"

#define ANSWER_USEC UINT64_C(15000000)
#define AGAIN_USEC  200000

#define BUS_NAME      "org.freedesktop.DBus"
#define BUS_PATH      "/org/freedesktop/DBus"
#define BUS_INTERFACE BUS_NAME

void connection_close(Connection *c) {
        c->bus = sd_bus_close_unref(c->bus);
        free(TAKE_PTR(c->lender));
        c->n_heard = 0;
}

static int lose(Connection *c, char **ret_error) {
        connection_close(c);
        return sentence_error(-ENOTCONN, ret_error,
                              "The system's tlobd has gone, or does not answer");
}

static bool is_from(sd_bus_message *m, const char *name) {
        const char *sender = sd_bus_message_get_sender(m);

        return name && sender && streq(sender, name);
}

static int on_report(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Connection *c = userdata;
        uint64_t id, lost;

        if (!is_from(m, c->lender))
                return 0;
        c->n_heard++;
        if (sd_bus_message_read(m, "t", &id) >= 0 && bus_packet_read(m, &c->told) >= 0 &&
            sd_bus_message_read(m, "t", &lost) >= 0)
                c->handlers->report(id, &c->told, lost, c->userdata);
        return 0;
}

static int on_gone(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Connection *c = userdata;
        const char *why;
        int for_good;
        uint64_t id;

        if (is_from(m, c->lender) && sd_bus_message_read(m, "t", &id) >= 0 &&
            bus_packet_read(m, &c->told) >= 0 && sd_bus_message_read(m, "bs", &for_good, &why) >= 0)
                c->handlers->gone(id, &c->told, for_good, *why ? why : NULL, c->userdata);
        return 0;
}

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *name, *before, *now;
        Connection *c = userdata;

        if (!is_from(m, BUS_NAME) || sd_bus_message_read(m, "sss", &name, &before, &now) < 0 ||
            !streq(name, TLOB_BUS_NAME))
                return 0;
        if (c->lender && !streq(c->lender, now)) {
                free(TAKE_PTR(c->lender));
                c->handlers->is_there(false, c->userdata);
        }
        if (!c->lender && *now && c->bus) {
                c->lender = strdup(now);
                if (c->lender)
                        c->handlers->is_there(true, c->userdata);
        }
        return 0;
}

/* Of the name, before anything is known of changes: these come later. */
static int find_lender(Connection *c) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *owner;
        int r;

        r = sd_bus_call_method(c->bus, BUS_NAME, BUS_PATH, BUS_INTERFACE, "GetNameOwner", &error,
                               &reply, "s", TLOB_BUS_NAME);
        if (sd_bus_error_has_name(&error, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
                return 0;
        if (r >= 0)
                r = sd_bus_message_read(reply, "s", &owner);
        if (r < 0)
                return r;
        c->lender = strdup(owner);
        return c->lender ? 0 : -ENOMEM;
}

static int start(Connection *c) {
        int r;

        r = sd_bus_open_system(&c->bus);
        if (r >= 0)
                r = sd_bus_match_signal(c->bus, NULL, BUS_NAME, BUS_PATH, BUS_INTERFACE,
                                        "NameOwnerChanged", on_owner, c);
        if (r >= 0)
                r = sd_bus_match_signal(c->bus, NULL, TLOB_BUS_NAME, TLOB_BUS_PATH,
                                        TLOB_BUS_LENDER_INTERFACE, "Report", on_report, c);
        if (r >= 0)
                r = sd_bus_match_signal(c->bus, NULL, TLOB_BUS_NAME, TLOB_BUS_PATH,
                                        TLOB_BUS_LENDER_INTERFACE, "Gone", on_gone, c);
        return r < 0 ? r : find_lender(c);
}

int connection_open(Connection *c, const ConnectionHandlers *handlers, void *userdata,
                    char **ret_error) {
        int r;

        connection_close(c);
        c->handlers = handlers;
        c->userdata = userdata;
        r = start(c);
        if (r >= 0)
                return 0;
        connection_close(c);
        return sentence_error(-ENOTCONN, ret_error, "Cannot connect to the system bus: %s",
                              strerror(-r));
}

int connection_new_call(Connection *c, const char *member, sd_bus_message **ret) {
        if (!c->lender)
                return -ENOTCONN;
        return sd_bus_message_new_method_call(c->bus, ret, c->lender, TLOB_BUS_PATH,
                                              TLOB_BUS_LENDER_INTERFACE, member);
}

/* Is it not there, or does not answer? */
static bool is_lost(int r, const sd_bus_error *error) {
        static const char *const names[] = {
                SD_BUS_ERROR_SERVICE_UNKNOWN, SD_BUS_ERROR_NAME_HAS_NO_OWNER, SD_BUS_ERROR_NO_REPLY,
                SD_BUS_ERROR_TIMEOUT,         SD_BUS_ERROR_DISCONNECTED,
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (sd_bus_error_has_name(error, names[i]))
                        return true;
        return !sd_bus_error_is_set(error) && r != -ENOMEM;
}

int connection_ask(Connection *c, sd_bus_message *call, sd_bus_message **ret_reply,
                   char **ret_error) {
        uint64_t end = now_usec() + ANSWER_USEC;

        for (;;) {
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
                int r;

                if (!c->bus)
                        return lose(c, ret_error);
                r = sd_bus_call(c->bus, call, ANSWER_USEC, &error, ret_reply);
                if (r >= 0)
                        return 0;
                /* Who keeps it busy for too long has to wait. */
                if (sd_bus_error_has_name(&error, SD_BUS_ERROR_LIMITS_EXCEEDED) &&
                    now_usec() < end) {
                        (void) usleep(AGAIN_USEC);
                        continue;
                }
                if (is_lost(r, &error))
                        return lose(c, ret_error);
                return sentence_error(r, ret_error, "%s", error.message ?: strerror(-r));
        }
}

/* So that it tells more. */
static void acknowledge(Connection *c) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        if (c->n_heard > 0 && connection_new_call(c, "Heard", &m) >= 0 &&
            sd_bus_message_append(m, "u", c->n_heard) >= 0 &&
            sd_bus_message_set_expect_reply(m, false) >= 0 && sd_bus_send(c->bus, m, NULL) >= 0)
                c->n_heard = 0;
}

int connection_dispatch(Connection *c) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = sd_bus_ref(c->bus);
        int r = 1;

        /* What it calls may close it. */
        while (r > 0 && c->bus == bus) {
                r = sd_bus_process(bus, NULL);
                if (r == 0)
                        acknowledge(c);
        }
        return r < 0 && c->bus == bus ? lose(c, NULL) : 0;
}

bool connection_has_read(const Connection *c) {
        uint64_t n;

        return c->bus && sd_bus_get_n_queued_read(c->bus, &n) >= 0 && n > 0;
}
