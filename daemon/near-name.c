/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Near names, for "did you mean". A name is near when few letters have to change (edit distance),
 * when one begins with the other, or when it holds the wanted name: a C++ symbol holds the plain
 * name of its method.
 *
 * The names come from files that nobody vouches for, millions of them perhaps, so the work is
 * limited: when it is used up, later names are not looked at. Names that cannot be shown are left
 * out.
 */

#include "near-name.h"

#include "sentence.h"

#define WORK_MAX        UINT64_C(50000000)
#define DISTANCE_AFFIX  100
#define DISTANCE_INSIDE 200

static unsigned min3(unsigned a, unsigned b, unsigned c) {
        a = a < b ? a : b;
        return a < c ? a : c;
}

/* Levenshtein's distance, one row at a time. */
static unsigned edit_distance(const char *a, size_t n, const char *b, size_t m) {
        unsigned row[NEAR_NAMES_LEN + 1];

        for (size_t j = 0; j <= m; j++)
                row[j] = (unsigned) j;
        for (size_t i = 1; i <= n; i++) {
                unsigned diagonal = row[0];

                row[0] = (unsigned) i;
                for (size_t j = 1; j <= m; j++) {
                        unsigned above = row[j];

                        row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
                        diagonal = above;
                }
        }
        return row[m];
}

/* How far name is from the wanted one; UINT32_MAX: not near. */
static unsigned name_distance(NearNames *names, const char *name, size_t n) {
        size_t longer = n > names->length ? n : names->length;
        size_t difference = n > names->length ? n - names->length : names->length - n;
        size_t limit = names->length / 3 + 1;

        if (difference <= limit && longer < NEAR_NAMES_LEN) {
                unsigned d = edit_distance(names->wanted, names->length, name, n);

                names->work += n * names->length;
                if (d <= limit)
                        return d;
        }
        if (n < 3 || names->length < 3)
                return UINT32_MAX;
        if (memcmp(name, names->wanted, longer - difference) == 0)
                return DISTANCE_AFFIX + (unsigned) difference;
        if (memmem(name, n, names->wanted, names->length))
                return DISTANCE_INSIDE + (unsigned) difference;
        return UINT32_MAX;
}

void near_names_init(NearNames *names, const char *wanted, size_t length) {
        *names = (NearNames){ .wanted = wanted, .length = length };
}

void near_names_offer(NearNames *names, const char *name) {
        char copy[NEAR_NAMES_LEN] = "";
        unsigned distance;
        size_t n, i;

        if (names->work > WORK_MAX)
                return;
        n = strnlen(name, NEAR_NAMES_LEN);
        names->work += n + 1;
        if (n == NEAR_NAMES_LEN)
                return;
        memcpy(copy, name, n);
        n = strcspn(copy, "@");
        copy[n] = '\0';

        distance = n > 0 ? name_distance(names, copy, n) : UINT32_MAX;
        if (distance == UINT32_MAX || !text_is_printable(copy))
                return;
        for (i = 0; i < names->n; i++)
                if (streq(names->best[i].name, copy))
                        return;

        for (i = 0; i < names->n && names->best[i].distance <= distance; i++)
                ;
        if (i == NEAR_NAMES_N)
                return;
        if (names->n < NEAR_NAMES_N)
                names->n++;
        memmove(&names->best[i + 1], &names->best[i], (names->n - 1 - i) * sizeof(names->best[0]));
        names->best[i].distance = distance;
        memcpy(names->best[i].name, copy, sizeof(copy));
}
