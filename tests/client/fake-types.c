/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fake-types.h"

#include "base/cleanup.h"
#include "tlob-bus.h"

static const char *const manager[] = {
        "Version", "Backends",   "Limitations", "Ignored",     "DeadlineMode", "NBindings",
        "NActive", "Windows",    "Violations",  "Undelivered", "ProbesNSec",   "Usage",
        "NFailed", "Suppressed", "Lost",        NULL,
};

static const char *const binding[] = {
        "Name",         "Unit",           "Source",
        "Executable",   "Start",          "Stop",
        "WaysOut",      "TailCalls",      "StartNote",
        "BuildID",      "BudgetNSec",     "ConfiguredBudgetNSec",
        "Budgets",      "State",          "ConfiguredBudgets",
        "StateReason",  "Backend",        "MeasuresNothing",
        "Windows",      "Violations",     "RunningNSec",
        "WaitingNSec",  "SleepingNSec",   "MaxNSec",
        "Histogram",    "Builds",         "Counters",
        "Tolerance",    "ToleranceState", "BurnRate",
        "OnViolation",  "ProbesNSec",     "OnViolationStarted",
        "StateBudgets", "Suppressed",     NULL,
};

static int append_value(sd_bus_message *reply, const char *type) {
        if (streq(type, "t"))
                return sd_bus_message_append(reply, "v", type, UINT64_C(4711));
        if (streq(type, "s"))
                return sd_bus_message_append(reply, "v", type, "text");
        if (streq(type, "as"))
                return sd_bus_message_append(reply, "v", type, 2, "one", "");
        if (streq(type, "a(s)"))
                return sd_bus_message_append(reply, "v", type, 2, "one", "");
        if (streq(type, "at"))
                return sd_bus_message_append(reply, "v", type, 2, UINT64_C(1), UINT64_MAX);
        if (streq(type, "a{ss}"))
                return sd_bus_message_append(reply, "v", type, 1, "total", "text");
        return -EINVAL;
}

static int append_properties(sd_bus_message *reply, const char *const *names, const char *type) {
        int r;

        r = sd_bus_message_open_container(reply, 'a', "{sv}");
        for (; r >= 0 && *names; names++) {
                r = sd_bus_message_open_container(reply, 'e', "sv");
                if (r >= 0)
                        r = sd_bus_message_append(reply, "s", *names);
                if (r >= 0)
                        r = append_value(reply, type);
                if (r >= 0)
                        r = sd_bus_message_close_container(reply);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* Of one object, all the same whichever it is. */
static int append_object(sd_bus_message *reply, const char *path, const char *type) {
        int r;

        r = sd_bus_message_open_container(reply, 'e', "oa{sa{sv}}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "o", path);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sa{sv}}");
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'e', "sa{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "s", TLOB_BUS_BINDING_INTERFACE);
        if (r >= 0)
                r = append_properties(reply, binding, type);
        for (unsigned i = 0; r >= 0 && i < 3; i++)
                r = sd_bus_message_close_container(reply);
        return r;
}

static int append_objects(sd_bus_message *reply, const Fake *fake) {
        int r;

        r = sd_bus_message_open_container(reply, 'a', "{oa{sa{sv}}}");
        for (size_t i = 0; r >= 0 && i < fake->n; i++) {
                _cleanup_free_ char *path = NULL;

                r = fake_binding_path(&fake->bindings[i], &path);
                if (r >= 0)
                        r = append_object(reply, path, fake->types);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        bool is_all = sd_bus_message_is_method_call(m, NULL, "GetManagedObjects");
        const Fake *fake = userdata;
        int r;

        if (!fake->types || (!is_all && !sd_bus_message_is_method_call(m, NULL, "GetAll")))
                return 0;
        r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0 && is_all)
                r = append_objects(reply, fake);
        else if (r >= 0)
                r = append_properties(
                        reply, streq(sd_bus_message_get_path(m), TLOB_BUS_PATH) ? manager : binding,
                        fake->types);
        if (r >= 0)
                r = sd_bus_send(NULL, reply, NULL);
        return r < 0 ? r : 1;
}

int fake_types_start(Fake *fake) {
        return sd_bus_add_filter(fake->bus, NULL, on_message, fake);
}
