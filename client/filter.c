/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * --unit= and --binding=, which narrow down what is shown. Both are shell patterns, as in
 * "systemctl list-units"; a backslash is no escape there, since names of units have some ("\x2d").
 */

#include "filter.h"

#include <fnmatch.h>

char *unit_name_complete(const char *unit) {
        static const char *const suffixes[] = { ".service", ".slice", ".scope" };
        const char *dot = strrchr(unit, '.');
        char *complete;

        for (size_t i = 0; dot && i < ELEMENTSOF(suffixes); i++)
                if (streq(dot, suffixes[i]))
                        return strdup(unit);
        /* "" stands for what runs outside units, and resets a key. */
        return asprintf(&complete, "%s%s", unit, *unit != '\0' ? ".service" : "") < 0 ? NULL
                                                                                      : complete;
}

int filter_init(Filter *filter, const Options *options) {
        _cleanup_free_ char *unit = NULL;

        if (options->unit) {
                unit = unit_name_complete(options->unit);
                if (!unit)
                        return -ENOMEM;
        }
        *filter = (Filter){ .unit = TAKE_PTR(unit), .binding = options->binding };
        return 0;
}

void filter_done(Filter *filter) {
        free(filter->unit);
        *filter = (Filter){};
}

static bool matches(const char *pattern, const char *s) {
        return !pattern || fnmatch(pattern, s, FNM_NOESCAPE) == 0;
}

bool filter_matches(const Filter *filter, const char *binding, const char *unit) {
        return matches(filter->binding, binding) && matches(filter->unit, unit);
}
