/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From the name of a file to the units that it is for, as in man systemd.unit: nginx.service and
 * nginx.service.d are for one unit, foo@.service and foo@.service.d for all instances,
 * foo-.service.d for all whose names begin so, service.d for all services. It knows names only and
 * opens nothing.
 */

#include "unit/pattern.h"

#include "base/cleanup.h"
#include "base/unit-name.h"

void unit_pattern_done(UnitPattern *pattern) {
        free((char *) pattern->name);
        free((char *) pattern->prefix);
        *pattern = (UnitPattern) {};
}

int unit_pattern_of(const char *name, bool is_drop_in, UnitPattern *ret) {
        UnitPattern pattern = {};
        const char *suffix;
        char type[32];
        size_t n;

        /* "service.d" */
        if (is_drop_in && !strchr(name, '.')) {
                (void) snprintf(type, sizeof(type), ".%s", name);
                name = type;
        }
        suffix = unit_name_type(name, UNIT_HAS_BINDINGS);
        if (!suffix)
                return 0;

        n = strlen(name) - strlen(suffix);
        if (n == 0 ? is_drop_in : name[n - 1] == '@' || (is_drop_in && name[n - 1] == '-')) {
                pattern.suffix = suffix;
                pattern.prefix = strndup(name, n);
                if (!pattern.prefix)
                        return -ENOMEM;
        } else {
                if (!unit_name_is_valid(name))
                        return 0;
                pattern.name = strdup(name);
                if (!pattern.name)
                        return -ENOMEM;
        }
        *ret = pattern;
        return 1;
}

bool unit_pattern_matches(const UnitPattern *pattern, const char *unit) {
        size_t n = strlen(unit), prefix, suffix;

        if (pattern->name)
                return streq(pattern->name, unit);
        prefix = strlen(pattern->prefix);
        suffix = strlen(pattern->suffix);
        /* "-.slice.d" is that of "-.slice", too. */
        return n > suffix && n >= prefix + suffix && strncmp(unit, pattern->prefix, prefix) == 0 &&
               streq(unit + n - suffix, pattern->suffix) && unit[n - suffix - 1] != '@';
}

bool unit_pattern_is_for_many(const UnitPattern *pattern, const char *name) {
        const char *suffix = unit_name_type(name, UNIT_HAS_BINDINGS);

        return !pattern->name && pattern->prefix[0] != '\0' &&
               strncmp(name, pattern->prefix, strlen(pattern->prefix)) == 0 && suffix &&
               streq(suffix, pattern->suffix);
}

void unit_pattern_list_done(UnitPatternList *list) {
        for (size_t i = 0; i < list->n; i++)
                unit_pattern_done(&list->items[i]);
        free(list->items);
        *list = (UnitPatternList) {};
}

static bool pattern_equal(const UnitPattern *a, const UnitPattern *b) {
        if (a->name || b->name)
                return streq_empty(a->name, b->name);
        return a->suffix == b->suffix && streq(a->prefix, b->prefix);
}

static int pattern_copy(const UnitPattern *pattern, UnitPattern *ret) {
        const char *text = pattern->name ?: pattern->prefix;
        char *copy = strdup(text);

        if (!copy)
                return -ENOMEM;
        *ret = *pattern;
        if (pattern->name)
                ret->name = copy;
        else
                ret->prefix = copy;
        return 0;
}

int unit_pattern_list_add(UnitPatternList *list, const UnitPattern *pattern) {
        UnitPattern *items;
        int r;

        for (size_t i = 0; i < list->n; i++)
                if (pattern_equal(&list->items[i], pattern))
                        return 0;
        items = reallocarray(list->items, list->n + 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        list->items = items;
        r = pattern_copy(pattern, &items[list->n]);
        if (r < 0)
                return r;
        list->n++;
        return 0;
}
