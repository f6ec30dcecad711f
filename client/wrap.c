/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where a line ends in a column that is too narrow. Names of units and bindings are long words made
 * of shorter ones, and are read more easily if these stay whole; but not at the price of a line
 * that is mostly empty.
 */

#include "wrap.h"

#include <stdbool.h>

#include "base/cleanup.h"

static bool is_joint(char c) {
        return c != '\0' && strchr("/.@-_:,", c);
}

/* The bytes of the next line. */
static size_t measure(const char *text, size_t width) {
        size_t columns = 0, end = 0, joint = 0, joint_columns = 0, i;

        for (i = 0; text[i] != '\0'; i++) {
                bool begins = (text[i] & 0xc0) != 0x80;

                if (begins && columns == width) {
                        if (text[i] == ' ')
                                return i;
                        if (end > 0)
                                return end;
                        return joint > 0 && joint_columns >= width / 3 ? joint : i;
                }
                columns += begins;
                if (text[i] == ' ')
                        end = i;
                else if (is_joint(text[i])) {
                        joint = i + 1;
                        joint_columns = columns;
                }
        }
        return i;
}

char *text_wrap(const char *text, size_t width) {
        /* In the worst case, each character has a line. */
        char *lines = malloc(2 * strlen(text) + 1), *to = lines;

        if (!lines)
                return NULL;
        while (*text != '\0') {
                size_t n = measure(text, width);

                to = mempcpy(to, text, n);
                text += n;
                text += strspn(text, " ");
                if (*text != '\0')
                        *to++ = '\n';
        }
        *to = '\0';
        return lines;
}
