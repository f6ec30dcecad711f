/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bindings and units by their names, for commands that take either. A binding comes first: its full
 * name is unique, and one without a slash could be mistaken for a unit without its type.
 */

#include "names.h"

#include <err.h>

#include "base/near-name.h"
#include "base/sentence.h"
#include "base/unit-name.h"
#include "unit-query.h"

bool names_has_all_instances(const json_object *binding, const char *unit) {
        return unit_name_is_instance(unit, json_string(binding, "Unit"));
}

static bool belongs_to(const json_object *binding, const char *unit) {
        const char *name = json_string(binding, "Name");
        size_t n = strlen(unit);

        return streq(json_string(binding, "Unit"), unit) ||
               names_has_all_instances(binding, unit) ||
               (strncmp(name, unit, n) == 0 && name[n] == '/');
}

static int collect_unit(const json_object *bindings, const char *unit, json_object *array) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < json_object_array_length(bindings); i++) {
                json_object *binding = json_object_array_get_idx(bindings, i);

                if (belongs_to(binding, unit))
                        r = json_append(array, json_object_get(binding));
        }
        return r;
}

static json_object *find_binding(const json_object *bindings, const char *name) {
        for (size_t i = 0; i < json_object_array_length(bindings); i++) {
                json_object *binding = json_object_array_get_idx(bindings, i);

                if (streq(json_string(binding, "Name"), name))
                        return binding;
        }
        return NULL;
}

/* systemd is asked only for what nobody here has heard of. */
static int collect_alias(Connection *connection, const json_object *bindings, char **unit,
                         json_object *array) {
        char *id = unit_name_resolve(connection, *unit);

        if (!id)
                return -ENOMEM;
        free(*unit);
        *unit = id;
        return collect_unit(bindings, id, array);
}

int names_find(Connection *connection, const json_object *bindings, const char *name,
               json_object **ret, char **ret_unit) {
        _cleanup_json_ json_object *array = json_object_new_array();
        json_object *binding = find_binding(bindings, name);
        _cleanup_free_ char *unit = NULL;
        int r = array ? 0 : -ENOMEM;

        if (r >= 0 && binding)
                r = json_append(array, json_object_get(binding));
        else if (r >= 0 && *name != '\0') {
                unit = unit_name_complete(name);
                r = unit ? collect_unit(bindings, unit, array) : -ENOMEM;
                if (r >= 0 && json_object_array_length(array) == 0)
                        r = collect_alias(connection, bindings, &unit, array);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(array);
        *ret_unit = TAKE_PTR(unit);
        return 0;
}

static void offer(NearNames *names, const char *name) {
        for (size_t i = 0; i < names->n; i++)
                if (streq(names->best[i].name, name))
                        return;
        if (*name != '\0')
                near_names_offer(names, name);
}

/* Adds those below key that are near to a name: "; near: nginx.service, nginx.service/request". */
static int add_near(const json_object *bindings, const char *key, const char *name, char **list) {
        NearNames names;

        near_names_init(&names, name, strlen(name));
        for (size_t i = 0; i < json_object_array_length(bindings); i++)
                offer(&names, json_string(json_object_array_get_idx(bindings, i), key));
        for (size_t i = 0; i < names.n; i++) {
                char *longer = sentence_make("%s%s%s", *list, **list == '\0' ? "; near: " : ", ",
                                             names.best[i].name);

                if (!longer)
                        return -ENOMEM;
                free(*list);
                *list = longer;
        }
        return 0;
}

int names_complain(const json_object *bindings, const char *name) {
        _cleanup_free_ char *list = strdup(""), *escaped = text_escape(name);
        _cleanup_free_ char *unit = unit_name_complete(name);
        int r;

        if (!list || !escaped || !unit)
                return -ENOMEM;
        r = add_near(bindings, "Name", name, &list);
        if (r >= 0 && *list == '\0')
                r = add_near(bindings, "Unit", unit, &list);
        if (r < 0)
                return r;
        warnx("There is no binding '%s', and no unit of that name with bindings%s", escaped, list);
        return 0;
}
