/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * org.tlob1.Manager at /org/tlob1: its methods. Each method reads, validates, asks
 * whether the caller may, lets the manager do it, and answers. A method may run twice for one
 * message: see bus_authorize().
 */

#include "bus/internal.h"

#include <inttypes.h>

#include "base/sentence.h"
#include "binding/keys.h"
#include "log.h"
#include "tlob-bus.h"

#define PROPERTIES_MAX       64 /* of a binding: there are fewer keys */
#define KEY_MAX              64
#define VIOLATION_FIXED_SIZE 900 /* keys, numbers, and what is aligned */

static int check_flags(uint64_t flags, uint64_t allowed, sd_bus_error *error) {
        if ((flags & ~allowed) == 0)
                return 0;
        return sd_bus_error_setf(
                error, SD_BUS_ERROR_INVALID_ARGS, "Unknown flags 0x%llx; this call accepts 0x%llx",
                (unsigned long long) (flags & ~allowed), (unsigned long long) allowed);
}

/* What a caller has sent is repeated as a sentence: cut or not, it is fit for a message. */
static int no_such_key(const char *key, sd_bus_error *error) {
        _cleanup_free_ char *sentence = NULL;
        const char *cut = strlen(key) > KEY_MAX ? "..." : "";
        int r;

        r = sentence_error(-EINVAL, &sentence, "There is no key '%.*s%s'; see tlob.binding(5)",
                           KEY_MAX, key, cut);
        return bus_set_error(error, r, sentence);
}

static int wrong_type(const char *key, const char *type, sd_bus_error *error) {
        _cleanup_free_ char *sentence = NULL;

        sentence = sentence_make("The value of '%s' has type '%s'; it must be a string", key, type);
        return sentence ? sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, sentence) : -ENOMEM;
}

/* One entry of an a{sv} with a string value. */
static int read_property(sd_bus_message *m, Binding *binding, PlaceKeys *given,
                         sd_bus_error *error) {
        _cleanup_free_ char *sentence = NULL;
        const char *key, *contents, *value;
        int r;

        r = sd_bus_message_read(m, "s", &key);
        if (r < 0)
                return r;
        if (strlen(key) > KEY_MAX)
                return no_such_key(key, error);
        r = sd_bus_message_peek_type(m, NULL, &contents);
        if (r < 0)
                return r;
        if (!streq(contents, "s"))
                return wrong_type(key, contents, error);
        r = sd_bus_message_read(m, "v", "s", &value);
        if (r < 0)
                return r;

        r = binding_set_next_key(binding, given, key, value, &sentence);
        if (r == -ENOENT)
                return no_such_key(key, error);
        return r < 0 ? bus_set_error(error, r, sentence) : 0;
}

int bus_read_properties(sd_bus_message *m, Binding *binding, sd_bus_error *error) {
        PlaceKeys given = {};
        unsigned n = 0;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                if (n++ == PROPERTIES_MAX)
                        return sd_bus_error_setf(error, TLOB_ERROR_INVALID_BINDING,
                                                 "A binding has no more than %i properties",
                                                 PROPERTIES_MAX);
                r = read_property(m, binding, &given, error);
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
        unsigned question = 0;
        Binding *added;
        uint64_t flags;
        uid_t user;
        int r;

        r = sd_bus_message_read(m, "s", &name);
        if (r < 0)
                return r;
        if (!binding_name_is_valid(name)) {
                r = sentence_error(-EINVAL, &sentence,
                                   "'%s' is not a valid name: write 1 to %i letters, digits, '-', "
                                   "'_' or '.', not beginning with '.'",
                                   name, BINDING_NAME_MAX);
                return bus_set_error(error, r, sentence);
        }
        r = binding_new(name, &binding);
        if (r < 0)
                return r;
        r = bus_read_properties(m, binding, error);
        if (r < 0)
                return r;
        r = sd_bus_message_read(m, "t", &flags);
        if (r < 0)
                return r;
        r = check_flags(flags, TLOB_FLAG_PERSIST, error);
        if (r < 0)
                return r;

        r = bus_authorize(bus, m, TLOB_ACTION_MANAGE_BINDINGS, method_add_binding, error);
        if (r <= 0)
                return r < 0 ? r : 1;
        r = bus_wait_for_unit(bus, m, binding->unit, method_add_binding);
        if (r <= 0)
                return r < 0 ? r : 1;

        r = bus_get_sender(bus, m, &user, NULL);
        if (r < 0)
                return r;
        binding->source.added_by = bus_is_owner(bus, user) ? 0 : user;
        r = manager_add_binding(bus->manager, TAKE_PTR(binding), flags, &added, &question,
                                &sentence);
        if (r == -EINPROGRESS && question > 0) {
                r = bus_wait_for_file(bus, m, question, method_add_binding);
                return r < 0 ? r : 1;
        }
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

static int append_binding(sd_bus_message *m, Manager *manager, Binding *binding) {
        _cleanup_free_ char *path = NULL;
        Statistics statistics;
        int r;

        r = manager_get_statistics(manager, binding, &statistics);
        if (r < 0)
                return r;
        r = bus_binding_path(binding, &path);
        if (r < 0)
                return r;
        return sd_bus_message_append(m, "(sosssttt)", binding->name, path,
                                     binding_unit_name(binding),
                                     binding_state_to_string(binding->measurement.state),
                                     manager_backend_of(binding), binding_budget_ns(binding),
                                     statistics.counters.starts, statistics.counters.violations);
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

/*
 * What a violation takes in a message, at most. The message bus ends the connection of whoever
 * sends it one that is too long (32 MiB by default).
 */
static size_t violation_size(const Violation *v) {
        const char *const strings[] = {
                v->binding,          v->unit,           v->comm,
                v->executable,       v->cause.woken_by, v->cause.preempted_by,
                v->cause.blocked_in,
        };
        size_t n = VIOLATION_FIXED_SIZE;

        for (size_t i = 0; i < ELEMENTSOF(strings); i++)
                n += strings[i] ? strlen(strings[i]) : 0;
        return n;
}

static int method_get_violations(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const Violation *violation;
        Bus *bus = userdata;
        size_t size = 0;
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
                violation = manager_get_violation(bus->manager, i);
                if (!violation)
                        break;
                size += violation_size(violation);
                if (size > BUS_ANSWER_SIZE_MAX)
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
                                         "No violation of window %" PRIu64 " is kept; "
                                         "ViolationsMax= in tlobd.conf sets how many are",
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
                                SD_BUS_RESULT("a{sv}", result), bus_method_verify,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(ss)", failed),
                                bus_method_reload, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ResetStatistics", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT,
                                method_reset_statistics, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Version", "s", bus_get_manager_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Backends", "as", bus_get_manager_property, 0,
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Limitations", "as", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("Ignored", "as", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("DeadlineMode", "s", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("NBindings", "u", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("NUserBindings", "u", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("NActive", "u", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("NFailed", "u", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("Windows", "t", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("Violations", "t", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("Lost", "t", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("Suppressed", "t", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("Undelivered", "a{st}", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("ProbesNSec", "t", bus_get_manager_property, 0, 0),
        SD_BUS_PROPERTY("Usage", "a{st}", bus_get_manager_property, 0, 0),
        REPORT_SIGNAL("Violation"),
        REPORT_SIGNAL("Completed"),
        SD_BUS_SIGNAL_WITH_ARGS("BindingAdded", SD_BUS_ARGS("s", name, "o", binding), 0),
        SD_BUS_SIGNAL_WITH_ARGS("BindingRemoved", SD_BUS_ARGS("s", name, "o", binding), 0),
        SD_BUS_SIGNAL_WITH_ARGS("ToleranceChanged",
                                SD_BUS_ARGS("s", name, "o", binding, "s", unit, "s", state, "t",
                                            windows, "t", violations, "d", burn_rate),
                                0),
        SD_BUS_SIGNAL_WITH_ARGS("Reloading", SD_BUS_ARGS("b", active), 0),
        SD_BUS_SIGNAL_WITH_ARGS("RecordsLost", SD_BUS_ARGS("t", count), 0),
        SD_BUS_VTABLE_END,
};

int bus_export_manager(Bus *bus) {
        return sd_bus_add_object_vtable(bus->bus, NULL, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE,
                                        vtable, bus);
}
