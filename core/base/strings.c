/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Lists of strings that end with NULL, as sd-bus and execve() have them. They are short: nothing is
 * sorted, searched or allocated in advance.
 */

#include "base/strings.h"

char **strings_free(char **strings) {
        for (char **p = strings; p && *p; p++)
                free(*p);
        free(strings);
        return NULL;
}

size_t strings_count(char *const *strings) {
        size_t n = 0;

        while (strings && strings[n])
                n++;
        return n;
}

bool strings_equal(char *const *a, char *const *b) {
        size_t n = strings_count(a);

        if (strings_count(b) != n)
                return false;
        for (size_t i = 0; i < n; i++)
                if (!streq(a[i], b[i]))
                        return false;
        return true;
}

int strings_append(char ***strings, const char *s) {
        _cleanup_free_ char *copy = strdup(s);
        size_t n = strings_count(*strings);
        char **p;

        if (!copy)
                return -ENOMEM;
        p = reallocarray(*strings, n + 2, sizeof(*p));
        if (!p)
                return -ENOMEM;
        p[n] = TAKE_PTR(copy);
        p[n + 1] = NULL;
        *strings = p;
        return 0;
}

int strings_copy(char *const *strings, char ***ret) {
        _cleanup_(strings_freep) char **copy = NULL;

        if (!strings) {
                *ret = NULL;
                return 0;
        }
        copy = calloc(strings_count(strings) + 1, sizeof(*copy));
        if (!copy)
                return -ENOMEM;
        for (size_t i = 0; strings[i]; i++) {
                copy[i] = strdup(strings[i]);
                if (!copy[i])
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(copy);
        return 0;
}
