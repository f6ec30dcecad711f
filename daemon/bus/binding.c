/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The objects below /org/tlob1/binding. They are found by their path when someone asks, so that no
 * binding knows that it is on a bus. Counters are read when asked for (binding-books.c), and never
 * signalled.
 */

#include "base/strings.h"
#include "binding/sites.h"
#include "binding/window-key.h"
#include "bus/internal.h"
#include "log.h"
#include "tlob-bus.h"

int bus_binding_path(const Binding *binding, char **ret) {
        return sd_bus_path_encode(TLOB_BUS_BINDING_PREFIX, binding->name, ret);
}

static int find_binding(sd_bus *b, const char *path, const char *interface, void *userdata,
                        void **ret_found, sd_bus_error *error) {
        _cleanup_free_ char *name = NULL;
        Bus *bus = userdata;
        Binding *binding;
        int r;

        r = sd_bus_path_decode(path, TLOB_BUS_BINDING_PREFIX, &name);
        if (r <= 0)
                return r;
        binding = binding_table_get(manager_bindings(bus->manager), name);
        if (!binding)
                return 0;
        *ret_found = binding;
        return 1;
}

static int list_bindings(sd_bus *b, const char *prefix, void *userdata, char ***ret_nodes,
                         sd_bus_error *error) {
        _cleanup_(strings_freep) char **nodes = NULL;
        Bus *bus = userdata;
        const BindingTable *bindings = manager_bindings(bus->manager);

        nodes = calloc(bindings->n + 1, sizeof(*nodes));
        if (!nodes)
                return -ENOMEM;
        for (size_t i = 0; i < bindings->n; i++) {
                int r = bus_binding_path(bindings->items[i], &nodes[i]);

                if (r < 0)
                        return r;
        }
        *ret_nodes = TAKE_PTR(nodes);
        return 1;
}

/*
 * The handlers of an object get the binding; the rest is with the slot that they are called from.
 */
static Bus *current_bus(sd_bus *b) {
        return sd_bus_slot_get_userdata(sd_bus_get_current_slot(b));
}

static int get_string(sd_bus *b, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const char *s = *(char **) userdata;

        return sd_bus_message_append(reply, "s", s ?: "");
}

static int get_unit(sd_bus *b, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", binding_unit_name(userdata));
}

static int get_measures_nothing(sd_bus *b, const char *path, const char *interface,
                                const char *property, sd_bus_message *reply, void *userdata,
                                sd_bus_error *error) {
        const Binding *binding = userdata;
        BindingState state = binding->measurement.state;
        bool waits_for_unit = binding->unit && binding->cgroup.id == 0;
        bool nothing = (state == BINDING_ACTIVE && binding->look.remark) ||
                       (state == BINDING_WAITING && !waits_for_unit);

        return sd_bus_message_append(reply, "b", (int) nothing);
}

static int get_executable(sd_bus *b, const char *path, const char *interface, const char *property,
                          sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Binding *binding = userdata;
        const char *executable = binding->resolved.path ?: binding->executable;

        return sd_bus_message_append(reply, "s", executable ?: "");
}

static int get_key(sd_bus *b, const char *path, const char *interface, const char *property,
                   sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        char text[WINDOW_KEY_MAX];

        return sd_bus_message_append(reply, "s", window_key_format(userdata, text));
}

static int get_start_offset(sd_bus *b, const char *path, const char *interface,
                            const char *property, sd_bus_message *reply, void *userdata,
                            sd_bus_error *error) {
        const Binding *binding = userdata;

        return sd_bus_message_append(reply, "t",
                                     binding->resolved.path ? binding->resolved.sites.start.offset
                                                            : UINT64_MAX);
}

static int get_stop_offset(sd_bus *b, const char *path, const char *interface, const char *property,
                           sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Binding *binding = userdata;
        bool known = binding->resolved.path && !binding_stop_is_return(binding);

        return sd_bus_message_append(reply, "t",
                                     known ? binding->resolved.sites.stop.offset : UINT64_MAX);
}

static int get_ways_out(sd_bus *b, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const FunctionExits *exits = &((const Binding *) userdata)->resolved.sites.exits;

        return sd_bus_message_append(reply, "u", (uint32_t) function_exits_n_ways(exits));
}

static int get_tail_calls(sd_bus *b, const char *path, const char *interface, const char *property,
                          sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const FunctionExits *exits = &((const Binding *) userdata)->resolved.sites.exits;

        return sd_bus_message_append(reply, "u", (uint32_t) function_exits_n_jumps(exits));
}

static int get_start_note(sd_bus *b, const char *path, const char *interface, const char *property,
                          sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Binding *binding = userdata;
        _cleanup_free_ char *note = NULL;
        int r;

        r = binding_describe_start(binding, &note);
        if (r < 0)
                return r;
        return sd_bus_message_append(reply, "s", note ?: "");
}

static int get_price(sd_bus *b, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *price = NULL;
        int r;

        r = manager_describe_price(current_bus(b)->manager, userdata, &price);
        if (r < 0)
                return r;
        return sd_bus_message_append(reply, "s", price ?: "");
}

static int get_stop_note(sd_bus *b, const char *path, const char *interface, const char *property,
                         sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Binding *binding = userdata;
        _cleanup_free_ char *note = NULL;
        int r;

        if (binding->resolved.path) {
                r = binding_describe_stop(binding, &note);
                if (r < 0)
                        return r;
        }
        return sd_bus_message_append(reply, "s", note ?: "");
}

static int get_budget(sd_bus *b, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "t", binding_budget_ns(userdata));
}

static int get_configured_budget(sd_bus *b, const char *path, const char *interface,
                                 const char *property, sd_bus_message *reply, void *userdata,
                                 sd_bus_error *error) {
        return sd_bus_message_append(reply, "t", binding_configured_budget_ns(userdata));
}

/* userdata: one for each, as in Binding. */
static int get_budgets(sd_bus *b, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const uint64_t *budget_ns = userdata;
        int r;

        r = sd_bus_message_open_container(reply, 'a', "{st}");
        for (unsigned i = 0; i < TLOB_N_BUDGETS && r >= 0; i++)
                if (budget_ns[i] != BUDGET_NONE)
                        r = sd_bus_message_append(reply, "{st}", budget_to_string(i), budget_ns[i]);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_state(sd_bus *b, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Binding *binding = userdata;

        return sd_bus_message_append(reply, "s",
                                     binding_state_to_string(binding->measurement.state));
}

static int get_backend(sd_bus *b, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", manager_backend_of(userdata));
}

static int get_tolerance_state(sd_bus *b, const char *path, const char *interface,
                               const char *property, sd_bus_message *reply, void *userdata,
                               sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", binding_tolerance_state(userdata));
}

/* As last judged; without a tolerance, 0. */
static int get_tolerance(sd_bus *b, const char *path, const char *interface, const char *property,
                         sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Binding *binding = userdata;
        const ToleranceTrack *track = binding->tolerance_state.track;

        if (streq(property, "BurnRate"))
                return sd_bus_message_append(
                        reply, "d", track ? tolerance_burn_rate(track, &binding->tolerance) : 0);
        if (streq(property, "ToleranceWindows"))
                return sd_bus_message_append(reply, "t", track ? track->windows : 0);
        return sd_bus_message_append(reply, "t", track ? track->violations : 0);
}

static int get_reach(sd_bus *b, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *text = NULL;
        int r;

        r = manager_describe_reach(userdata, &text);
        if (r < 0)
                return r;
        return sd_bus_message_append(reply, "s", text ?: "");
}

/*
 * The methods find their binding by the path of the message: while polkit is asked, the one that
 * they were called for may go.
 */
static int message_get_name(sd_bus_message *m, char **ret) {
        int r;

        r = sd_bus_path_decode(sd_bus_message_get_path(m), TLOB_BUS_BINDING_PREFIX, ret);
        return r == 0 ? -EINVAL : r;
}

/* The binding that the message is for. */
static int message_get_binding(sd_bus_message *m, Manager *manager, Binding **ret,
                               sd_bus_error *error) {
        _cleanup_free_ char *name = NULL, *sentence = NULL;
        int r;

        r = message_get_name(m, &name);
        if (r < 0)
                return r;
        *ret = manager_find_binding(manager, name, &sentence);
        return *ret ? 0 : bus_set_error(error, -ENXIO, sentence);
}

static int remove_binding(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *name = NULL;
        uint64_t flags;
        int r;

        r = message_get_name(m, &name);
        if (r < 0)
                return r;
        r = sd_bus_message_read(m, "t", &flags);
        if (r < 0)
                return r;
        return bus_remove_binding(userdata, m, name, flags, remove_binding, error);
}

static int method_remove(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return remove_binding(m, current_bus(sd_bus_message_get_bus(m)), error);
}

static int set_budget(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *name = NULL;
        uint64_t nsec, flags;
        int r;

        r = message_get_name(m, &name);
        if (r < 0)
                return r;
        r = sd_bus_message_read(m, "tt", &nsec, &flags);
        if (r < 0)
                return r;
        return bus_set_budget(userdata, m, name, nsec, flags, set_budget, error);
}

static int method_set_budget(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return set_budget(m, current_bus(sd_bus_message_get_bus(m)), error);
}

static int get_cost(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *cost = NULL;
        unsigned question = 0;
        Bus *bus = userdata;
        Binding *binding;
        int r;

        r = message_get_binding(m, bus->manager, &binding, error);
        if (r < 0)
                return r;
        r = manager_describe_cost(bus->manager, binding, &question, &cost);
        if (r == -EINPROGRESS && question > 0) {
                r = bus_wait_for_file(bus, m, question, get_cost);
                return r < 0 ? r : 1;
        }
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(m, "s", cost ?: "");
}

static int method_get_cost(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return get_cost(m, current_bus(sd_bus_message_get_bus(m)), error);
}

static int reset_statistics(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Bus *bus = userdata;
        Binding *binding;
        int r;

        r = message_get_binding(m, bus->manager, &binding, error);
        if (r < 0)
                return r;

        r = bus_authorize(bus, m, TLOB_ACTION_MANAGE_BINDINGS, reset_statistics, error);
        if (r <= 0)
                return r < 0 ? r : 1;

        r = manager_reset_statistics(bus->manager, binding);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(m, NULL);
}

static int method_reset_statistics(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return reset_statistics(m, current_bus(sd_bus_message_get_bus(m)), error);
}

#define CONST  SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGE SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("Remove", SD_BUS_ARGS("t", flags), SD_BUS_NO_RESULT, method_remove,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("SetBudget", SD_BUS_ARGS("t", nsec, "t", flags), SD_BUS_NO_RESULT,
                                method_set_budget, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetCost", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", sentence),
                                method_get_cost, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ResetStatistics", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT,
                                method_reset_statistics, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Name", "s", get_string, offsetof(Binding, name), CONST),
        SD_BUS_PROPERTY("Unit", "s", get_unit, 0, CHANGE),
        SD_BUS_PROPERTY("Source", "s", get_string, offsetof(Binding, source), CHANGE),
        SD_BUS_PROPERTY("Executable", "s", get_executable, 0, CHANGE),
        SD_BUS_PROPERTY("Start", "s", get_string, offsetof(Binding, start), CHANGE),
        SD_BUS_PROPERTY("Stop", "s", get_string, offsetof(Binding, stop), CHANGE),
        SD_BUS_PROPERTY("Key", "s", get_key, 0, CHANGE),
        SD_BUS_PROPERTY("StartOffset", "t", get_start_offset, 0, CHANGE),
        SD_BUS_PROPERTY("StopOffset", "t", get_stop_offset, 0, CHANGE),
        SD_BUS_PROPERTY("WaysOut", "u", get_ways_out, 0, CHANGE),
        SD_BUS_PROPERTY("TailCalls", "u", get_tail_calls, 0, CHANGE),
        SD_BUS_PROPERTY("StartNote", "s", get_start_note, 0, CHANGE),
        SD_BUS_PROPERTY("StopNote", "s", get_stop_note, 0, CHANGE),
        SD_BUS_PROPERTY("BuildID", "s", get_string, offsetof(Binding, resolved.build_id), CHANGE),
        SD_BUS_PROPERTY("Price", "s", get_price, 0, 0),
        SD_BUS_PROPERTY("BudgetNSec", "t", get_budget, 0, CHANGE),
        SD_BUS_PROPERTY("ConfiguredBudgetNSec", "t", get_configured_budget, 0, CHANGE),
        SD_BUS_PROPERTY("Budgets", "a{st}", get_budgets, offsetof(Binding, budget_ns), CHANGE),
        SD_BUS_PROPERTY("ConfiguredBudgets", "a{st}", get_budgets,
                        offsetof(Binding, configured_budget_ns), CHANGE),
        SD_BUS_PROPERTY("State", "s", get_state, 0, CHANGE),
        SD_BUS_PROPERTY("StateReason", "s", get_string, offsetof(Binding, measurement.reason),
                        CHANGE),
        SD_BUS_PROPERTY("MeasuresNothing", "b", get_measures_nothing, 0, CHANGE),
        SD_BUS_PROPERTY("Backend", "s", get_backend, 0, CHANGE),
        SD_BUS_PROPERTY("BackendReason", "s", get_string,
                        offsetof(Binding, measurement.backend_reason), CHANGE),
        SD_BUS_PROPERTY("Reach", "s", get_reach, 0, 0),
        SD_BUS_PROPERTY("Windows", "t", bus_get_binding_books, 0, 0),
        SD_BUS_PROPERTY("Violations", "t", bus_get_binding_books, 0, 0),
        SD_BUS_PROPERTY("RunningNSec", "t", bus_get_binding_books, 0, 0),
        SD_BUS_PROPERTY("WaitingNSec", "t", bus_get_binding_books, 0, 0),
        SD_BUS_PROPERTY("SleepingNSec", "t", bus_get_binding_books, 0, 0),
        SD_BUS_PROPERTY("ElapsedNSec", "t", bus_get_binding_books, 0, 0),
        SD_BUS_PROPERTY("MaxNSec", "t", bus_get_binding_books, 0, 0),
        SD_BUS_PROPERTY("ProbesNSec", "t", bus_get_binding_books, 0, 0),
        SD_BUS_PROPERTY("OnViolation", "s", get_string, offsetof(Binding, on_violation), CHANGE),
        SD_BUS_PROPERTY("OnViolationStarted", "t", NULL, offsetof(Binding, action.n_started), 0),
        SD_BUS_PROPERTY("OnViolationSkipped", "t", NULL, offsetof(Binding, action.n_skipped), 0),
        SD_BUS_PROPERTY("Tolerance", "s", get_string, offsetof(Binding, tolerance_text), CHANGE),
        SD_BUS_PROPERTY("ToleranceWindowNSec", "t", NULL, offsetof(Binding, tolerance_window_ns),
                        CHANGE),
        SD_BUS_PROPERTY("ToleranceState", "s", get_tolerance_state, 0, CHANGE),
        SD_BUS_PROPERTY("ToleranceWindows", "t", get_tolerance, 0, 0),
        SD_BUS_PROPERTY("ToleranceViolations", "t", get_tolerance, 0, 0),
        SD_BUS_PROPERTY("BurnRate", "d", get_tolerance, 0, 0),
        SD_BUS_PROPERTY("Histogram", "a(tt)", bus_get_binding_books, 0, 0),
        SD_BUS_PROPERTY("Builds", "a(sa(tt))", bus_get_binding_books, 0, 0),
        SD_BUS_PROPERTY("Counters", "a{st}", bus_get_binding_books, 0, 0),
        SD_BUS_VTABLE_END,
};

int bus_export_bindings(Bus *bus) {
        int r;

        r = sd_bus_add_fallback_vtable(bus->bus, NULL, TLOB_BUS_BINDING_PREFIX,
                                       TLOB_BUS_BINDING_INTERFACE, vtable, find_binding, bus);
        if (r < 0)
                return r;
        r = sd_bus_add_node_enumerator(bus->bus, NULL, TLOB_BUS_BINDING_PREFIX, list_bindings, bus);
        if (r < 0)
                return r;
        return sd_bus_add_object_manager(bus->bus, NULL, TLOB_BUS_PATH);
}

/* Emits a signal of the manager that carries name and path, and the one of the object manager. */
static void emit_presence(Bus *bus, const Binding *binding, const char *member,
                          int (*emit)(sd_bus *, const char *, const char *, ...)) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (!bus_has_room(bus, false))
                return;
        r = bus_binding_path(binding, &path);
        if (r >= 0)
                r = sd_bus_emit_signal(bus->bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, member,
                                       "so", binding->name, path);
        if (r >= 0)
                r = emit(bus->bus, path, TLOB_BUS_BINDING_INTERFACE, NULL);
        if (r < 0)
                log_warning_errno(r, "Failed to send %s for '%s', ignoring: %m", member,
                                  binding->name);
}

void bus_emit_binding_added(const Binding *binding, void *userdata) {
        emit_presence(userdata, binding, "BindingAdded", sd_bus_emit_interfaces_added);
}

void bus_emit_binding_removed(const Binding *binding, void *userdata) {
        emit_presence(userdata, binding, "BindingRemoved", sd_bus_emit_interfaces_removed);
}

void bus_emit_binding_changed(const Binding *binding, void *userdata) {
        _cleanup_free_ char *path = NULL;
        Bus *bus = userdata;
        int r;

        if (!bus_has_room(bus, false))
                return;
        r = bus_binding_path(binding, &path);
        if (r >= 0)
                r = sd_bus_emit_properties_changed(
                        bus->bus, path, TLOB_BUS_BINDING_INTERFACE, "Unit", "Source", "Executable",
                        "Start", "Stop", "Key", "StartOffset", "StopOffset", "WaysOut", "TailCalls",
                        "StartNote", "StopNote", "BuildID", "BudgetNSec", "ConfiguredBudgetNSec",
                        "Budgets", "ConfiguredBudgets", "State", "StateReason", "MeasuresNothing",
                        "Backend", "BackendReason", "OnViolation", "Tolerance",
                        "ToleranceWindowNSec", "ToleranceState", NULL);
        if (r < 0)
                log_warning_errno(r, "Failed to send the changes of '%s', ignoring: %m",
                                  binding->name);
}

void bus_emit_tolerance_changed(const Binding *binding, void *userdata) {
        const ToleranceTrack *track = binding->tolerance_state.track;
        _cleanup_free_ char *path = NULL;
        Bus *bus = userdata;
        int r;

        if (!bus_has_room(bus, false))
                return;
        r = bus_binding_path(binding, &path);
        if (r >= 0)
                r = sd_bus_emit_signal(bus->bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE,
                                       "ToleranceChanged", "sossttd", binding->name, path,
                                       binding_unit_name(binding), binding_tolerance_state(binding),
                                       track->windows, track->violations,
                                       tolerance_burn_rate(track, &binding->tolerance));
        if (r >= 0)
                r = sd_bus_emit_properties_changed(bus->bus, path, TLOB_BUS_BINDING_INTERFACE,
                                                   "ToleranceState", NULL);
        if (r < 0)
                log_warning_errno(r,
                                  "Failed to send how the tolerance of '%s' stands, ignoring: %m",
                                  binding->name);
}
