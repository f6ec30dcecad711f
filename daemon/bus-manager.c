/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * org.tlob1.Manager at /org/tlob1: its methods and properties. Each method reads, validates, asks
 * whether the caller may, lets the manager do it, and answers. A method may run twice for one
 * message: see bus_authorize().
 */

#include "bus-internal.h"

#include <inttypes.h>

#include "log.h"
#include "tlob-bus.h"
#include "version.h"

static int check_flags(uint64_t flags, uint64_t allowed, sd_bus_error *error) {
        if ((flags & ~allowed) == 0)
                return 0;
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                 "Flags 0x%llx are not known; this call takes 0x%llx",
                                 (unsigned long long) (flags & ~allowed),
                                 (unsigned long long) allowed);
}

/* One entry of an a{sv} with a string value. */
static int read_property(sd_bus_message *m, Binding *binding, sd_bus_error *error) {
        _cleanup_free_ char *sentence = NULL;
        const char *key, *contents, *value;
        int r;

        r = sd_bus_message_read(m, "s", &key);
        if (r < 0)
                return r;
        r = sd_bus_message_peek_type(m, NULL, &contents);
        if (r < 0)
                return r;
        if (!streq(contents, "s"))
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "The value of '%s' has type '%s'; it must be a string",
                                         key, contents);
        r = sd_bus_message_read(m, "v", "s", &value);
        if (r < 0)
                return r;

        r = binding_set_key(binding, key, value, &sentence);
        if (r == -ENOENT)
                return sd_bus_error_setf(error, TLOB_ERROR_INVALID_BINDING,
                                         "There is no key '%s'; see tlob.binding(5)", key);
        return r < 0 ? bus_set_error(error, r, sentence) : 0;
}

static int read_properties(sd_bus_message *m, Binding *binding, sd_bus_error *error) {
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_property(m, binding, error);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        return sd_bus_message_exit_container(m);
}

static int method_add_binding(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *sentence = NULL, *path = NULL;
        Bus *bus = userdata;
        const char *name;
        Binding *added;
        uint64_t flags;
        int r;

        r = sd_bus_message_read(m, "s", &name);
        if (r < 0)
                return r;
        if (!binding_name_is_valid(name))
                return sd_bus_error_setf(
                        error, TLOB_ERROR_INVALID_BINDING,
                        "'%s' is not a name; it takes 1 to %i letters, digits, '-', "
                        "'_' and '.', and does not begin with '.'",
                        name, BINDING_NAME_MAX);
        r = binding_new(name, &binding);
        if (r < 0)
                return r;
        r = read_properties(m, binding, error);
        if (r < 0)
                return r;
        r = sd_bus_message_read(m, "t", &flags);
        if (r < 0)
                return r;
        r = check_flags(flags, TLOB_FLAG_PERSIST, error);
        if (r < 0)
                return r;

        r = bus_wait_for_unit(bus, m, binding->unit, method_add_binding);
        if (r <= 0)
                return r < 0 ? r : 1;
        r = bus_authorize(bus, m, TLOB_ACTION_MANAGE_BINDINGS, method_add_binding, error);
        if (r <= 0)
                return r < 0 ? r : 1;

        r = manager_add_binding(bus->manager, TAKE_PTR(binding), flags, &added, &sentence);
        if (r < 0)
                return bus_set_error(error, r, sentence);
        r = bus_binding_path(added, &path);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(m, "o", path);
}

int bus_remove_binding(Bus *bus, sd_bus_message *m, const char *name, uint64_t flags,
                       sd_bus_message_handler_t handler, sd_bus_error *error) {
        _cleanup_free_ char *sentence = NULL;
        int r;

        r = check_flags(flags, 0, error);
        if (r < 0)
                return r;
        if (!manager_find_binding(bus->manager, name, &sentence))
                return bus_set_error(error, -ENXIO, sentence);

        r = bus_authorize(bus, m, TLOB_ACTION_MANAGE_BINDINGS, handler, error);
        if (r <= 0)
                return r < 0 ? r : 1;

        r = manager_remove_binding(bus->manager, name, &sentence);
        if (r < 0)
                return bus_set_error(error, r, sentence);
        return sd_bus_reply_method_return(m, NULL);
}

static int method_remove_binding(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *name;
        uint64_t flags;
        int r;

        r = sd_bus_message_read(m, "st", &name, &flags);
        if (r < 0)
                return r;
        return bus_remove_binding(userdata, m, name, flags, method_remove_binding, error);
}

int bus_set_budget(Bus *bus, sd_bus_message *m, const char *name, uint64_t nsec, uint64_t flags,
                   sd_bus_message_handler_t handler, sd_bus_error *error) {
        _cleanup_free_ char *sentence = NULL;
        int r;

        r = check_flags(flags, TLOB_FLAG_PERSIST, error);
        if (r < 0)
                return r;
        if (!manager_find_binding(bus->manager, name, &sentence))
                return bus_set_error(error, -ENXIO, sentence);

        r = bus_authorize(bus, m, TLOB_ACTION_MANAGE_BINDINGS, handler, error);
        if (r <= 0)
                return r < 0 ? r : 1;

        r = manager_set_budget(bus->manager, name, nsec, flags, &sentence);
        if (r < 0)
                return bus_set_error(error, r, sentence);
        return sd_bus_reply_method_return(m, NULL);
}

static int method_set_budget(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        uint64_t nsec, flags;
        const char *name;
        int r;

        r = sd_bus_message_read(m, "stt", &name, &nsec, &flags);
        if (r < 0)
                return r;
        return bus_set_budget(userdata, m, name, nsec, flags, method_set_budget, error);
}

static int method_get_binding(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *sentence = NULL, *path = NULL;
        const Binding *binding;
        Bus *bus = userdata;
        const char *name;
        int r;

        r = sd_bus_message_read(m, "s", &name);
        if (r < 0)
                return r;
        binding = manager_find_binding(bus->manager, name, &sentence);
        if (!binding)
                return bus_set_error(error, -ENXIO, sentence);
        r = bus_binding_path(binding, &path);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(m, "o", path);
}

static int append_binding(sd_bus_message *m, Manager *manager, const Binding *binding) {
        _cleanup_free_ char *path = NULL;
        Statistics statistics;
        int r;

        r = manager_get_statistics(manager, binding, &statistics);
        if (r < 0)
                return r;
        r = bus_binding_path(binding, &path);
        if (r < 0)
                return r;
        return sd_bus_message_append(m, "(sosssttt)", binding->name, path, binding->unit ?: "",
                                     binding_state_to_string(binding->state),
                                     binding->backend ? binding->backend->ops->name : "",
                                     binding_budget_ns(binding), statistics.counters.starts,
                                     statistics.counters.violations);
}

static int method_list_bindings(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        Bus *bus = userdata;
        const BindingTable *bindings = manager_bindings(bus->manager);
        int r;

        r = sd_bus_message_new_method_return(m, &reply);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(reply, 'a', "(sosssttt)");
        if (r < 0)
                return r;
        for (size_t i = 0; i < bindings->n; i++) {
                r = append_binding(reply, bus->manager, bindings->items[i]);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_close_container(reply);
        if (r < 0)
                return r;
        return sd_bus_send(NULL, reply, NULL);
}

static int method_get_violations(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const Violation *violation;
        Bus *bus = userdata;
        uint32_t max;
        int r;

        r = sd_bus_message_read(m, "u", &max);
        if (r < 0)
                return r;
        r = sd_bus_message_new_method_return(m, &reply);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(reply, 'a', "a{sv}");
        if (r < 0)
                return r;
        for (uint32_t i = 0; max == 0 || i < max; i++) {
                violation = violation_log_get(&bus->manager->violations, i);
                if (!violation)
                        break;
                r = bus_append_violation(reply, violation);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_close_container(reply);
        if (r < 0)
                return r;
        return sd_bus_send(NULL, reply, NULL);
}

static int append_verified(sd_bus_message *m, const Binding *binding, const char *backend,
                           const char *reason) {
        bool is_return = binding_stop_is_return(binding);
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}{sv}",
                                  "executable", "s", binding->path,
                                  "start", "s", binding->start_site.function ?: binding->start,
                                  "start-offset", "t", binding->start_site.offset,
                                  "stop", "s",
                                  is_return ? "return"
                                            : binding->stop_site.function ?: binding->stop,
                                  "backend", "s", backend,
                                  "reason", "s", reason);
        if (r < 0)
                return r;
        if (!is_return) {
                r = sd_bus_message_append(m, "{sv}", "stop-offset", "t", binding->stop_site.offset);
                if (r < 0)
                        return r;
        }
        if (binding->build_id) {
                r = sd_bus_message_append(m, "{sv}", "build-id", "s", binding->build_id);
                if (r < 0)
                        return r;
        }
        return sd_bus_message_close_container(m);
}

static int method_verify(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_free_ char *sentence = NULL, *reason = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        const char *backend;
        Bus *bus = userdata;
        int r;

        r = binding_new("verify", &binding);
        if (r < 0)
                return r;
        r = read_properties(m, binding, error);
        if (r < 0)
                return r;

        r = bus_wait_for_unit(bus, m, binding->unit, method_verify);
        if (r <= 0)
                return r < 0 ? r : 1;

        /* It opens files with our rights. */
        r = bus_authorize(bus, m, TLOB_ACTION_INSPECT, method_verify, error);
        if (r <= 0)
                return r < 0 ? r : 1;

        r = manager_verify_binding(bus->manager, binding, &backend, &reason, &sentence);
        if (r < 0)
                return bus_set_error(error, r, sentence);

        r = sd_bus_message_new_method_return(m, &reply);
        if (r < 0)
                return r;
        r = append_verified(reply, binding, backend, reason);
        if (r < 0)
                return r;
        return sd_bus_send(NULL, reply, NULL);
}

static int method_get_stack(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        static char *const none[] = { NULL };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const Violation *violation;
        Bus *bus = userdata;
        uint64_t id;
        int r;

        r = sd_bus_message_read(m, "t", &id);
        if (r < 0)
                return r;
        r = bus_authorize(bus, m, TLOB_ACTION_INSPECT, method_get_stack, error);
        if (r <= 0)
                return r < 0 ? r : 1;

        violation = manager_find_violation(bus->manager, id);
        if (!violation)
                return sd_bus_error_setf(error, TLOB_ERROR_NO_SUCH_WINDOW,
                                         "No violation of window %" PRIu64 " is remembered; "
                                         "ViolationsMax= in tlobd.conf says how many are",
                                         id);

        r = sd_bus_message_new_method_return(m, &reply);
        if (r < 0)
                return r;
        r = sd_bus_message_append_strv(reply, violation->cause.stack ?: (char **) none);
        if (r < 0)
                return r;
        return sd_bus_send(NULL, reply, NULL);
}

static int method_reset_statistics(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const BindingTable *bindings;
        Bus *bus = userdata;
        int r;

        r = bus_authorize(bus, m, TLOB_ACTION_MANAGE_BINDINGS, method_reset_statistics, error);
        if (r <= 0)
                return r < 0 ? r : 1;

        bindings = manager_bindings(bus->manager);
        for (size_t i = 0; i < bindings->n; i++) {
                r = manager_reset_statistics(bus->manager, bindings->items[i]);
                if (r < 0)
                        return r;
        }
        return sd_bus_reply_method_return(m, NULL);
}

static int get_version(sd_bus *b, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", VERSION);
}

static int get_backends(sd_bus *b, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Manager *m = ((Bus *) userdata)->manager;
        int r;

        r = sd_bus_message_open_container(reply, 'a', "s");
        if (r < 0)
                return r;
        for (size_t i = 0; i < m->n_slots; i++) {
                r = sd_bus_message_append(reply, "s", m->slots[i].ops->name);
                if (r < 0)
                        return r;
        }
        return sd_bus_message_close_container(reply);
}

static int append_limitations(sd_bus_message *reply, const Manager *m) {
        int r;

        /* That a kernel has no monitor of its own is no limitation: few have. */
        for (size_t i = 0; i < m->n_absent; i++) {
                if (m->n_slots > 0 && m->absent[i].error == -ENOENT)
                        continue;
                r = sd_bus_message_append(reply, "s", m->absent[i].reason);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < m->n_slots; i++) {
                const BackendSlot *slot = &m->slots[i];
                const char *const *p;

                if (!slot->backend)
                        continue;
                for (p = slot->ops->limitations(slot->backend); *p; p++) {
                        r = sd_bus_message_append(reply, "s", *p);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

static int get_limitations(sd_bus *b, const char *path, const char *interface, const char *property,
                           sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        int r;

        r = sd_bus_message_open_container(reply, 'a', "s");
        if (r < 0)
                return r;
        r = append_limitations(reply, ((Bus *) userdata)->manager);
        if (r < 0)
                return r;
        return sd_bus_message_close_container(reply);
}

static int get_deadline_mode(sd_bus *b, const char *path, const char *interface,
                             const char *property, sd_bus_message *reply, void *userdata,
                             sd_bus_error *error) {
        const Manager *m = ((Bus *) userdata)->manager;
        const char *mode = "";

        /* The last resort is what is promised at least. */
        for (size_t i = 0; i < m->n_slots; i++)
                if (m->slots[i].backend)
                        mode = m->slots[i].ops->deadline_mode(m->slots[i].backend);
        return sd_bus_message_append(reply, "s", mode);
}

/* NBindings, NActive: u */
static int get_number(sd_bus *b, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const BindingTable *bindings = manager_bindings(((Bus *) userdata)->manager);
        size_t n = streq(property, "NActive") ? binding_table_count(bindings, BINDING_ACTIVE)
                                              : bindings->n;

        return sd_bus_message_append(reply, "u", (uint32_t) n);
}

/* Windows, Violations: t */
static int get_total(sd_bus *b, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        ManagerTotals totals;
        int r;

        r = manager_get_totals(((Bus *) userdata)->manager, &totals);
        if (r < 0)
                return r;
        return sd_bus_message_append(
                reply, "t", streq(property, "Windows") ? totals.windows : totals.violations);
}

/* Lost, Suppressed: t */
static int get_missing(sd_bus *b, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Manager *m = ((Bus *) userdata)->manager;

        return sd_bus_message_append(reply, "t",
                                     streq(property, "Lost") ? m->n_lost : m->n_suppressed);
}

#define REPORT_SIGNAL(member)                                                                      \
        SD_BUS_SIGNAL_WITH_ARGS(member,                                                            \
                                SD_BUS_ARGS("s", binding, "s", unit, "u", tid, "t", budget_ns,     \
                                            "t", elapsed_ns, "t", running_ns, "t", waiting_ns,     \
                                            "t", sleeping_ns, "a{sv}", details),                   \
                                0)

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS(
                "AddBinding", SD_BUS_ARGS("s", name, "a{sv}", properties, "t", flags),
                SD_BUS_RESULT("o", binding), method_add_binding, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("RemoveBinding", SD_BUS_ARGS("s", name, "t", flags),
                                SD_BUS_NO_RESULT, method_remove_binding,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetBinding", SD_BUS_ARGS("s", name), SD_BUS_RESULT("o", binding),
                                method_get_binding, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("SetBudget", SD_BUS_ARGS("s", name, "t", nsec, "t", flags),
                                SD_BUS_NO_RESULT, method_set_budget, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListBindings", SD_BUS_NO_ARGS,
                                SD_BUS_RESULT("a(sosssttt)", bindings), method_list_bindings,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetViolations", SD_BUS_ARGS("u", max),
                                SD_BUS_RESULT("aa{sv}", violations), method_get_violations,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetStack", SD_BUS_ARGS("t", window_id),
                                SD_BUS_RESULT("as", frames), method_get_stack,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Verify", SD_BUS_ARGS("a{sv}", properties),
                                SD_BUS_RESULT("a{sv}", result), method_verify,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(ss)", failed),
                                bus_method_reload, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ResetStatistics", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT,
                                method_reset_statistics, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Backends", "as", get_backends, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Limitations", "as", get_limitations, 0, 0),
        SD_BUS_PROPERTY("DeadlineMode", "s", get_deadline_mode, 0, 0),
        SD_BUS_PROPERTY("NBindings", "u", get_number, 0, 0),
        SD_BUS_PROPERTY("NActive", "u", get_number, 0, 0),
        SD_BUS_PROPERTY("Windows", "t", get_total, 0, 0),
        SD_BUS_PROPERTY("Violations", "t", get_total, 0, 0),
        SD_BUS_PROPERTY("Lost", "t", get_missing, 0, 0),
        SD_BUS_PROPERTY("Suppressed", "t", get_missing, 0, 0),
        REPORT_SIGNAL("Violation"),
        REPORT_SIGNAL("Completed"),
        SD_BUS_SIGNAL_WITH_ARGS("BindingAdded", SD_BUS_ARGS("s", name, "o", binding), 0),
        SD_BUS_SIGNAL_WITH_ARGS("BindingRemoved", SD_BUS_ARGS("s", name, "o", binding), 0),
        SD_BUS_SIGNAL_WITH_ARGS("Reloading", SD_BUS_ARGS("b", active), 0),
        SD_BUS_SIGNAL_WITH_ARGS("RecordsLost", SD_BUS_ARGS("t", count), 0),
        SD_BUS_VTABLE_END,
};

int bus_export_manager(Bus *bus) {
        return sd_bus_add_object_vtable(bus->bus, NULL, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE,
                                        vtable, bus);
}
