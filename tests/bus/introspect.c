/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Writes what introspection says of the manager's and of a binding's object, for test-interface to
 * compare with dbus/org.tlob1.xml.
 */

#include "fixture.h"
#include "tlob-bus.h"

static int print(Fixture *fixture, const char *path) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *xml;
        int r;

        r = fixture_call(fixture, path, "org.freedesktop.DBus.Introspectable", "Introspect", &error,
                         &reply, NULL);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "s", &xml);
        if (r < 0)
                return r;
        /* A form feed between the two. */
        return printf("%s\f", xml) < 0 ? -EIO : 0;
}

int main(void) {
        void *state;
        int r;

        fixture_setup(&state);
        fixture_write(state, 0, "bindings.d/x.conf",
                      "[Binding x]\nExecutable=libc.so.6\nFunction=fsync\nBudgetSec=1ms\n");
        r = manager_reload(((Fixture *) state)->manager);
        if (r >= 0)
                r = print(state, TLOB_BUS_PATH);
        if (r >= 0)
                r = print(state, TLOB_BUS_BINDING_PREFIX "/x");
        fixture_teardown(&state);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
