/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The names of marks, which tlob-mark.h puts into programs: it and this file have to agree. How the
 * probes of a mark are found is the same as with others (elf/usdt.h).
 */

#include "elf/mark.h"

#include <ctype.h>
#include <string.h>

#include "base/sentence.h"
#include "elf/file.h"

#define PROVIDER "tlob"

static const char *const endings[MARK_N_SIDES] = {
        [MARK_BEGIN] = "__begin",
        [MARK_END] = "__end",
};

static bool is_name(const char *name, size_t length) {
        for (size_t i = 0; i < length; i++)
                if (!isascii(name[i]) || (!isalnum((unsigned char) name[i]) && name[i] != '_'))
                        return false;
        return length > 0 && length <= MARK_NAME_MAX && !isdigit((unsigned char) name[0]);
}

bool mark_name_is_valid(const char *name) {
        return is_name(name, strlen(name));
}

size_t mark_parse_probe(const char *provider, const char *name, MarkSide *ret) {
        size_t length = strlen(name);

        if (!streq(provider, PROVIDER))
                return 0;
        for (MarkSide side = 0; side < MARK_N_SIDES; side++) {
                size_t n = strlen(endings[side]);

                if (length > n && streq(name + length - n, endings[side]) &&
                    is_name(name, length - n)) {
                        *ret = side;
                        return length - n;
                }
        }
        return 0;
}

size_t mark_parse_place(const char *place, const char **ret_name, MarkSide *ret) {
        static const char begin[] = USDT_PLACE PROVIDER ":";
        size_t n;

        if (strncmp(place, begin, strlen(begin)) != 0)
                return 0;
        n = mark_parse_probe(PROVIDER, place + strlen(begin), ret);
        if (n > 0)
                *ret_name = place + strlen(begin);
        return n;
}

char *mark_make_place(const char *name, MarkSide side) {
        return sentence_make(USDT_PLACE PROVIDER ":%s%s", name, endings[side]);
}

size_t mark_of_places(const char *start, const char *stop, const char **ret_name) {
        const char *name, *other;
        MarkSide first, last;
        size_t n;

        if (!start || !stop)
                return 0;
        n = mark_parse_place(start, &name, &first);
        if (n == 0 || first != MARK_BEGIN || mark_parse_place(stop, &other, &last) != n ||
            last != MARK_END || strncmp(name, other, n) != 0)
                return 0;
        *ret_name = name;
        return n;
}
