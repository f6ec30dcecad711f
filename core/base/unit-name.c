/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The rules for names of units, as in man systemd.unit, and the types of units that there are. It
 * knows names only: whether there is such a unit is systemd's to say.
 */

#include "base/unit-name.h"

#include "base/cleanup.h"

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static const struct {
        const char *suffix;
        unsigned traits;
} types[] = {
        { ".service", UNIT_HAS_BINDINGS | UNIT_HAS_PROCESSES },
        { ".slice", UNIT_HAS_BINDINGS },
        { ".scope", UNIT_HAS_BINDINGS | UNIT_HAS_PROCESSES },
        { ".socket", UNIT_HAS_PROCESSES },
        { ".mount", UNIT_HAS_PROCESSES },
        { ".swap", UNIT_HAS_PROCESSES },
        { ".target", 0 },
        { ".timer", 0 },
        { ".path", 0 },
        { ".device", 0 },
        { ".automount", 0 },
};

const char *unit_name_type(const char *name, unsigned traits) {
        const char *dot = strrchr(name, '.');

        for (size_t i = 0; dot && i < ELEMENTSOF(types); i++)
                if ((types[i].traits & traits) == traits && streq(dot, types[i].suffix))
                        return types[i].suffix;
        return NULL;
}

bool unit_name_is_valid(const char *name) {
        const char *type = unit_name_type(name, UNIT_HAS_BINDINGS);
        size_t n = strlen(name);

        return type && n > strlen(type) && n <= UNIT_NAME_MAX && name[0] != '@' &&
               strspn(name, LETTERS DIGITS ":-_.@\\") == n;
}

bool unit_name_is_template(const char *name) {
        const char *at = strchr(name, '@');

        return at && at[1] == '.' && at + 1 == strrchr(name, '.');
}

bool unit_name_is_instance(const char *name, const char *template) {
        const char *suffix = strrchr(template, '.');
        size_t n = strlen(name), whole = strlen(template), n_suffix;

        if (!unit_name_is_template(template) || n <= whole)
                return false;
        n_suffix = strlen(suffix);
        return strncmp(name, template, whole - n_suffix) == 0 && streq(name + n - n_suffix, suffix);
}

char *unit_name_make_instance(const char *template, const char *instance) {
        const char *at = strchr(template, '@');
        char *name;

        return asprintf(&name, "%.*s@%s%s", (int) (at - template), template, instance, at + 1) < 0
                       ? NULL
                       : name;
}

/* Of a unit that can have no budgets, too, so that this is what is said of it. */
char *unit_name_complete(const char *unit) {
        char *complete;

        if (unit_name_type(unit, UNIT_ANY))
                return strdup(unit);
        /* "" stands for what runs outside units, and resets a key. */
        return asprintf(&complete, "%s%s", unit, *unit != '\0' ? ".service" : "") < 0 ? NULL
                                                                                      : complete;
}
