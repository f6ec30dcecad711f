/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A client of the bus that reads the times in Violation signals. */

#include "signals.h"

#include "bench.h"
#include "tlob-bus.h"

#define TIMEOUT_USEC UINT64_C(10000000)

typedef struct Listener {
        SignalHandler handler;
        void *userdata;
        unsigned n_received;
        int error;
} Listener;

/* One entry of the details: those that are numbers and have that name. */
static int read_detail(sd_bus_message *m, uint64_t *time_ns, uint64_t *late_ns) {
        const char *name, *type;
        uint64_t *to;
        int r;

        r = sd_bus_message_read(m, "s", &name);
        if (r < 0)
                return r;
        to = streq(name, "time_ns") ? time_ns : streq(name, "late_ns") ? late_ns : NULL;
        r = sd_bus_message_peek_type(m, NULL, &type);
        if (r < 0)
                return r;
        if (!to || !streq(type, "t"))
                return sd_bus_message_skip(m, "v");
        return sd_bus_message_read(m, "v", "t", to);
}

/* When the budget ran out. */
static int read_deadline(sd_bus_message *m, uint64_t *ret_ns) {
        uint64_t time_ns = 0, late_ns = 0;
        int r;

        r = sd_bus_message_skip(m, "ssuttttt");
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_detail(m, &time_ns, &late_ns);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        if (time_ns == 0)
                return -EBADMSG;
        *ret_ns = time_ns - late_ns;
        return 0;
}

static int on_violation(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        uint64_t now = bench_now_ns(), deadline;
        Listener *listener = userdata;
        int r;

        r = read_deadline(m, &deadline);
        if (r < 0) {
                listener->error = bench_fail(r, "Failed to read a Violation");
                return 0;
        }
        listener->handler(now - deadline, listener->n_received++, listener->userdata);
        return 0;
}

int signals_open(sd_bus **ret) {
        int r = sd_bus_open_system(ret);

        return r < 0 ? bench_fail(r, "Failed to open the bus") : 0;
}

int signals_receive(sd_bus *bus, unsigned n, SignalsReady ready, SignalHandler handler,
                    void *userdata) {
        Listener listener = { .handler = handler, .userdata = userdata };
        sd_bus_slot *slot = NULL;
        int r;

        r = sd_bus_match_signal(bus, &slot, NULL, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE,
                                "Violation", on_violation, &listener);
        if (r < 0)
                return bench_fail(r, "Failed to listen on the bus");
        r = ready(userdata);
        while (r >= 0 && listener.error >= 0 && listener.n_received < n) {
                r = sd_bus_process(bus, NULL);
                if (r != 0)
                        continue;
                r = sd_bus_wait(bus, TIMEOUT_USEC);
                if (r == 0)
                        r = -ETIMEDOUT;
                if (r == -EINTR)
                        r = 0;
        }
        sd_bus_slot_unref(slot);
        if (r < 0)
                return bench_fail(r, "%u violations came of %u", listener.n_received, n);
        return listener.error;
}
