/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * --unit= and --binding=, which narrow down what is shown, and the column of units. Both options
 * are shell patterns, as in "systemctl list-units"; a backslash is no escape there, since names of
 * units have some ("\x2d").
 */

#include "filter.h"

#include <fnmatch.h>

#include "base/unit-name.h"
#include "unit-query.h"

static bool is_pattern(const char *s) {
        return strpbrk(s, "*?[") != NULL;
}

static bool unit_is_in_name(const char *binding, const char *unit) {
        size_t n = strlen(unit);

        return n == 0 || (strncmp(binding, unit, n) == 0 && binding[n] == '/');
}

static bool units_are_in_names(const json_object *rows, const char *binding_key,
                               const char *unit_key) {
        for (size_t i = 0; i < json_object_array_length(rows); i++) {
                const json_object *row = json_object_array_get_idx(rows, i);

                if (!unit_is_in_name(json_string(row, binding_key), json_string(row, unit_key)))
                        return false;
        }
        return true;
}

int units_show(json_object *rows, const char *binding_key, const char *unit_key) {
        bool known = units_are_in_names(rows, binding_key, unit_key);
        int r = 0;

        for (size_t i = 0; r >= 0 && i < json_object_array_length(rows); i++) {
                json_object *row = json_object_array_get_idx(rows, i);

                r = json_add_string(row, "shown-unit", known ? "" : json_string(row, unit_key));
        }
        return r;
}

int filter_init(Filter *filter, Connection *connection) {
        const Options *options = connection->options;
        _cleanup_free_ char *unit = NULL;

        if (options->unit) {
                unit = is_pattern(options->unit) || *options->unit == '\0'
                               ? strdup(options->unit)
                               : unit_name_resolve(connection, options->unit);
                if (!unit)
                        return -ENOMEM;
        }
        *filter = (Filter) { .unit = TAKE_PTR(unit), .binding = options->binding };
        return 0;
}

void filter_done(Filter *filter) {
        free(filter->unit);
        *filter = (Filter) {};
}

static bool matches(const char *pattern, const char *s) {
        return !pattern || fnmatch(pattern, s, FNM_NOESCAPE) == 0;
}

/* A pattern without a type is for every type: "web*" finds web.slice, "web?" finds web1.service. */
static bool matches_unit(const char *pattern, const char *unit) {
        const char *dot = strrchr(unit, '.');
        _cleanup_free_ char *bare = NULL;

        if (matches(pattern, unit))
                return true;
        if (!dot || !is_pattern(pattern))
                return false;
        bare = strndup(unit, (size_t) (dot - unit));
        return bare && matches(pattern, bare);
}

bool filter_matches(const Filter *filter, const char *binding, const char *unit) {
        return matches(filter->binding, binding) && matches_unit(filter->unit, unit);
}

int filter_select(const Filter *filter, json_object *rows, const char *binding_key,
                  const char *unit_key, size_t max, json_object **ret) {
        _cleanup_json_ json_object *selected = json_object_new_array();

        if (!selected)
                return -ENOMEM;
        for (size_t i = 0; i < json_object_array_length(rows); i++) {
                json_object *row = json_object_array_get_idx(rows, i);
                int r;

                if (max > 0 && json_object_array_length(selected) >= max)
                        break;
                if (!filter_matches(filter, json_string(row, binding_key),
                                    json_string(row, unit_key)))
                        continue;
                r = json_append(selected, json_object_get(row));
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(selected);
        return 0;
}
