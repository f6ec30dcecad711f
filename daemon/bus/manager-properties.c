/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The properties of org.tlob1.Manager. */

#include "bus/internal.h"
#include "journal-socket.h"
#include "manager/lent.h"
#include "usage.h"

static int get_version(sd_bus *b, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", manager_get_version(((Bus *) userdata)->manager));
}

/* What the manager has a list of. */
static int append_list(sd_bus_message *m, const Manager *manager,
                       const char *(*get)(const Manager *manager, size_t i)) {
        const char *item;
        int r;

        r = sd_bus_message_open_container(m, 'a', "s");
        for (size_t i = 0; r >= 0 && (item = get(manager, i)); i++)
                r = sd_bus_message_append(m, "s", item);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int get_backends(sd_bus *b, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return append_list(reply, ((Bus *) userdata)->manager, manager_get_backend);
}

static int get_limitations(sd_bus *b, const char *path, const char *interface, const char *property,
                           sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return append_list(reply, ((Bus *) userdata)->manager, manager_get_limitation);
}

static int get_ignored(sd_bus *b, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return append_list(reply, ((Bus *) userdata)->manager, manager_get_ignored);
}

static int get_deadline_mode(sd_bus *b, const char *path, const char *interface,
                             const char *property, sd_bus_message *reply, void *userdata,
                             sd_bus_error *error) {
        const Manager *m = ((Bus *) userdata)->manager;

        return sd_bus_message_append(reply, "s", manager_get_deadline_mode(m));
}

/* NBindings, NActive, NFailed, NUserBindings: u */
static int get_number(sd_bus *b, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Manager *m = ((Bus *) userdata)->manager;
        const BindingTable *bindings = manager_bindings(m);
        size_t n = bindings->n;

        if (streq(property, "NActive"))
                n = binding_table_count(bindings, BINDING_ACTIVE);
        else if (streq(property, "NFailed"))
                n = binding_table_count(bindings, BINDING_FAILED);
        else if (streq(property, "NUserBindings"))
                n = manager_count_lent(m);
        return sd_bus_message_append(reply, "u", (uint32_t) n);
}

/* Windows, Violations, Suppressed, ProbesNSec: t */
static int get_total(sd_bus *b, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        ManagerTotals totals;
        int r;

        r = manager_get_totals(((Bus *) userdata)->manager, &totals);
        if (r < 0)
                return r;
        return sd_bus_message_append(reply, "t",
                                     streq(property, "Windows")      ? totals.windows
                                     : streq(property, "Violations") ? totals.violations
                                     : streq(property, "ProbesNSec") ? totals.probes_ns
                                                                     : totals.suppressed);
}

static int get_undelivered(sd_bus *b, const char *path, const char *interface, const char *property,
                           sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        JournalSocketDrops entries = journal_socket_drops();
        BusUnsent unsent = bus_get_unsent(userdata);

        return sd_bus_message_append(reply, "a{st}", 4, "journal-stalled", entries.stalled,
                                     "journal-refused", entries.refused, "signals", unsent.signals,
                                     "answers", unsent.answers);
}

static int get_usage(sd_bus *b, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Usage usage = usage_read();

        return sd_bus_message_append(reply, "a{st}", 4, "memory-bytes", usage.memory, "descriptors",
                                     usage.descriptors, "descriptors-max", usage.descriptors_max,
                                     "cpu-ns", usage.cpu_ns);
}

static int get_lost(sd_bus *b, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "t", manager_get_lost(((Bus *) userdata)->manager));
}

int bus_get_manager_property(sd_bus *b, const char *path, const char *interface,
                             const char *property, sd_bus_message *reply, void *userdata,
                             sd_bus_error *error) {
        static const struct {
                const char *property;
                sd_bus_property_get_t get;
        } properties[] = {
                { "Version", get_version },         { "Backends", get_backends },
                { "Limitations", get_limitations }, { "DeadlineMode", get_deadline_mode },
                { "NBindings", get_number },        { "NActive", get_number },
                { "NFailed", get_number },          { "Windows", get_total },
                { "Violations", get_total },        { "Lost", get_lost },
                { "Suppressed", get_total },        { "Undelivered", get_undelivered },
                { "ProbesNSec", get_total },        { "Usage", get_usage },
                { "Ignored", get_ignored },         { "NUserBindings", get_number },
        };

        for (size_t i = 0; i < ELEMENTSOF(properties); i++)
                if (streq(properties[i].property, property))
                        return properties[i].get(b, path, interface, property, reply, userdata,
                                                 error);
        return -ENOENT;
}
