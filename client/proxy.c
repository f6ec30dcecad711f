/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Reading from tlobd. Each function is one question of a verb, answered as JSON; what is done with
 * the answer is up to the verb. Nothing here changes anything on the other side, or needs rights.
 */

#include "proxy.h"

#include "tlob-bus.h"

#define PROPERTIES     "org.freedesktop.DBus.Properties"
#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"

static int read_reply(sd_bus_message *reply, const char *signature, json_object **ret) {
        int r;

        r = bus_json_read_message(reply, signature, ret);
        return r < 0 ? connection_complain_reply(r) : 0;
}

static int get_properties(Connection *connection, const char *path, const char *interface,
                          json_object **ret) {
        _cleanup_message_ sd_bus_message *call = NULL, *reply = NULL;
        int r;

        r = connection_new_call(connection, path, PROPERTIES, "GetAll", &call);
        if (r < 0)
                return r;
        r = sd_bus_message_append(call, "s", interface);
        if (r < 0)
                return connection_complain_arguments(r);
        r = connection_send(connection, call, &reply);
        if (r < 0)
                return r;
        return read_reply(reply, "a{sv}", ret);
}

int proxy_get_manager(Connection *connection, json_object **ret) {
        return get_properties(connection, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, ret);
}

int proxy_get_binding_path(Connection *connection, const char *name, char **ret) {
        _cleanup_message_ sd_bus_message *reply = NULL;
        const char *path;
        int r;

        r = connection_call(connection, "GetBinding", &reply, "s", name);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "o", &path);
        if (r < 0)
                return connection_complain_reply(r);
        r = free_and_strdup(ret, path);
        return r < 0 ? connection_complain_reply(r) : 0;
}

int proxy_get_cost(Connection *connection, const char *path, char **ret) {
        _cleanup_message_ sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_free_ char *refusal = NULL;
        const char *cost;
        int r;

        r = connection_new_call(connection, path, TLOB_BUS_BINDING_INTERFACE, "GetCost", &call);
        if (r >= 0)
                r = connection_ask(connection, call, &reply, &refusal);
        if (r >= 0)
                r = sd_bus_message_read(reply, "s", &cost);
        return r < 0 ? r : free_and_strdup(ret, cost);
}

int proxy_get_binding_at(Connection *connection, const char *path, json_object **ret) {
        return get_properties(connection, path, TLOB_BUS_BINDING_INTERFACE, ret);
}

int proxy_get_binding(Connection *connection, const char *name, json_object **ret) {
        _cleanup_free_ char *path = NULL, *cost = NULL;
        int r;

        r = proxy_get_binding_path(connection, name, &path);
        if (r < 0)
                return r;
        r = proxy_get_binding_at(connection, path, ret);
        if (r < 0 || proxy_get_cost(connection, path, &cost) < 0)
                return r;
        r = json_add_string(*ret, "Cost", cost);
        return r < 0 ? connection_complain_reply(r) : 0;
}

static int compare_names(const void *a, const void *b) {
        json_object *const *x = a, *const *y = b;

        return strcmp(json_string(*x, "Name"), json_string(*y, "Name"));
}

/* Takes the bindings out of what ObjectManager tells: path -> interface -> property -> value. */
static int collect_bindings(json_object *objects, json_object **ret) {
        _cleanup_json_ json_object *bindings = json_object_new_array();

        if (!bindings)
                return -ENOMEM;
        json_object_object_foreach(objects, path, interfaces) {
                json_object *binding;
                int r;

                (void) path;
                if (!json_object_object_get_ex(interfaces, TLOB_BUS_BINDING_INTERFACE, &binding))
                        continue;
                r = json_append(bindings, json_object_get(binding));
                if (r < 0)
                        return r;
        }
        json_object_array_sort(bindings, compare_names);
        *ret = TAKE_PTR(bindings);
        return 0;
}

int proxy_get_bindings(Connection *connection, json_object **ret) {
        _cleanup_message_ sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_json_ json_object *objects = NULL;
        int r;

        r = connection_new_call(connection, NULL, OBJECT_MANAGER, "GetManagedObjects", &call);
        if (r < 0)
                return r;
        r = connection_send(connection, call, &reply);
        if (r < 0)
                return r;
        r = read_reply(reply, "a{oa{sa{sv}}}", &objects);
        if (r < 0)
                return r;
        r = collect_bindings(objects, ret);
        return r < 0 ? connection_complain_reply(r) : 0;
}

int proxy_list_bindings(Connection *connection, json_object **ret) {
        static const char *const names[] = {
                "Name",       "Path",    "Unit",       "State", "Backend",
                "BudgetNSec", "Windows", "Violations", NULL,
        };
        _cleanup_message_ sd_bus_message *reply = NULL;
        int r;

        r = connection_call(connection, "ListBindings", &reply, NULL);
        if (r < 0)
                return r;
        r = bus_json_read_rows(reply, "(sosssttt)", names, ret);
        return r < 0 ? connection_complain_reply(r) : 0;
}

int proxy_get_violations(Connection *connection, uint32_t max, json_object **ret) {
        _cleanup_message_ sd_bus_message *reply = NULL;
        int r;

        r = connection_call(connection, "GetViolations", &reply, "u", max);
        if (r < 0)
                return r;
        return read_reply(reply, "aa{sv}", ret);
}
