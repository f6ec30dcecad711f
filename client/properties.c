/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The properties of a binding that is to be, for AddBinding() and Verify(). The values are passed
 * on as they were written; what they may be, only the daemon decides. What was not given is not
 * sent, so that its default is the daemon's, too.
 */

#include "properties.h"

#include <inttypes.h>

#include "base/unit-name.h"
#include "binding/keys.h"

static int append_key(sd_bus_message *m, const char *key, const char *value) {
        int r;

        r = sd_bus_message_append(m, "{sv}", key, "s", value);
        return r < 0 ? r : 0;
}

static int append_offset(sd_bus_message *m, const char *key, uint64_t offset) {
        char value[32];

        (void) snprintf(value, sizeof(value), "0x%" PRIx64, offset);
        return append_key(m, key, value);
}

static int append_line(sd_bus_message *m, const MonitorLine *line) {
        char budget[32];
        int r;

        r = append_key(m, "Executable", line->path);
        if (r < 0)
                return r;
        r = append_offset(m, "Start", line->start);
        if (r < 0)
                return r;
        r = append_offset(m, "Stop", line->stop);
        if (r < 0)
                return r;
        (void) snprintf(budget, sizeof(budget), "%" PRIu64 "ns", line->budget_ns);
        return append_key(m, "BudgetSec", budget);
}

static int append_options(sd_bus_message *m, const Options *options) {
        _cleanup_free_ char *unit = NULL;
        int r;

        if (options->unit) {
                unit = unit_name_complete(options->unit);
                if (!unit)
                        return -ENOMEM;
                r = append_key(m, "Unit", unit);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < OPTION_KEYS_N; i++) {
                const KeyValue *key = options->keys + i;

                if (!key->value)
                        continue;
                r = append_key(m, key->key, key->value);
                if (r < 0)
                        return r;
        }
        return 0;
}

int properties_append_options(sd_bus_message *m, const Options *options, const MonitorLine *line) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        if (line) {
                r = append_line(m, line);
                if (r < 0)
                        return r;
        }
        r = append_options(m, options);
        if (r < 0)
                return r;
        return sd_bus_message_close_container(m);
}

int properties_append_binding(sd_bus_message *m, const Binding *binding) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        for (const char *const *key = binding_keys(); *key; key++) {
                _cleanup_free_ char *value = NULL;

                r = binding_get_key(binding, *key, &value);
                if (r == -ENOMEM)
                        return r;
                if (r <= 0)
                        continue;
                r = append_key(m, *key, value);
                if (r < 0)
                        return r;
        }
        return sd_bus_message_close_container(m);
}
