/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One style of names in all JSON that tlobctl writes. On D-Bus there are three, each by its own
 * custom: properties (BudgetNSec), arguments of signals (budget_ns), and what Verify() answers
 * (start-offset). That of the properties is chosen, since most of what is written are properties,
 * and systemd's tools write theirs so.
 */

#include "json-name.h"

#include <ctype.h>

#define NAME_MAX_LEN 128

/* Words that are not just written with a capital. */
static const struct {
        const char *word, *written;
} words[] = {
        { "id", "ID" },
        { "ns", "NSec" },
        { "pid", "PID" },
        { "tid", "TID" },
};

static size_t write_word(char *to, const char *word, size_t n) {
        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (strlen(words[i].word) == n && memcmp(words[i].word, word, n) == 0)
                        return (size_t) (stpcpy(to, words[i].written) - to);
        memcpy(to, word, n);
        to[0] = (char) toupper((unsigned char) to[0]);
        return n;
}

/* No word gets longer than twice its length. */
static const char *rename_member(const char *name, char buf[static NAME_MAX_LEN]) {
        size_t n = 0;

        if (2 * strlen(name) >= NAME_MAX_LEN)
                return name;
        for (const char *p = name; *p != '\0';) {
                size_t length = strcspn(p, "_-");

                if (length > 0)
                        n += write_word(buf + n, p, length);
                p += length + (p[length] != '\0');
        }
        buf[n] = '\0';
        return buf;
}

static json_object *rename_object(json_object *object) {
        _cleanup_json_ json_object *copy = json_object_new_object();

        if (!copy)
                return NULL;
        json_object_object_foreach(object, name, value) {
                char buf[NAME_MAX_LEN];
                json_object *renamed = NULL;

                if (value) {
                        renamed = streq(name, "Counters") ? json_object_get(value)
                                                          : json_rename(value);
                        if (!renamed)
                                return NULL;
                }
                if (json_add(copy, rename_member(name, buf), renamed) < 0)
                        return NULL;
        }
        return TAKE_PTR(copy);
}

static json_object *rename_array(json_object *array) {
        _cleanup_json_ json_object *copy = json_object_new_array();

        if (!copy)
                return NULL;
        for (size_t i = 0; i < json_object_array_length(array); i++) {
                json_object *value = json_object_array_get_idx(array, i);
                json_object *renamed = value ? json_rename(value) : NULL;

                if ((value && !renamed) || json_append(copy, renamed) < 0)
                        return NULL;
        }
        return TAKE_PTR(copy);
}

json_object *json_rename(json_object *value) {
        switch (json_object_get_type(value)) {
        case json_type_object:
                return rename_object(value);
        case json_type_array:
                return rename_array(value);
        default:
                return json_object_get(value);
        }
}
