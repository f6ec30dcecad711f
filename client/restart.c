/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The moment in which there is no tlobd because it is restarted. It goes on where it was, so a call
 * that comes then may as well wait for it. Whether it is coming back is for systemd to say: after a
 * crash the unit is "activating" (auto-restart), or for another moment still "active", because the
 * bus noticed first; in the first half of "systemctl restart" it is "deactivating".
 *
 * That the name is taken is an event; the state of the unit is not, for who has not subscribed to
 * systemd, and is read again several times a second.
 */

#include "restart.h"

#include "base/cleanup.h"
#include "base/clock.h"

#define WAIT_NS   UINT64_C(5000000000)
#define LOOK_USEC UINT64_C(200000)

static int ask_of_unit(sd_bus *bus, const char *property, char **ret) {
        return sd_bus_get_property_string(bus, "org.freedesktop.systemd1",
                                          "/org/freedesktop/systemd1/unit/tlobd_2eservice",
                                          "org.freedesktop.systemd1.Unit", property, NULL, ret);
}

bool restart_unit_is_missing(sd_bus *bus) {
        _cleanup_free_ char *state = NULL;

        return ask_of_unit(bus, "LoadState", &state) >= 0 && streq(state, "not-found");
}

/* Is systemd about to start it, or has it done so just now? */
static bool is_coming(sd_bus *bus) {
        static const char *const states[] = { "active", "reloading", "activating", "deactivating" };
        _cleanup_free_ char *state = NULL;

        if (ask_of_unit(bus, "ActiveState", &state) < 0)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                if (streq(state, states[i]))
                        return true;
        return false;
}

/* Waits for whatever comes next. */
static int wait_for_event(sd_bus *bus) {
        int r;

        r = sd_bus_process(bus, NULL);
        if (r != 0)
                return r;
        r = sd_bus_wait(bus, LOOK_USEC);
        return r == -EINTR ? 0 : r;
}

int restart_wait(sd_bus *bus) {
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *match = NULL;
        uint64_t begin = now_ns();
        int r;

        /* It only wakes us. */
        r = sd_bus_add_match(bus, &match, RESTART_MATCH, NULL, NULL);
        while (r >= 0) {
                if (sd_bus_get_name_creds(bus, TLOB_BUS_NAME, 0, NULL) >= 0)
                        return 1;
                if (!is_coming(bus))
                        return 0;
                if (now_ns() - begin > WAIT_NS)
                        return -ETIMEDOUT;
                r = wait_for_event(bus);
        }
        return r;
}
