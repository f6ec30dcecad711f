/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/percent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int percent_parse(const char *s, unsigned *ret) {
        unsigned value = 0;

        if (strcmp(s, "infinity") == 0) {
                *ret = PERCENT_NONE;
                return 0;
        }
        if (*s == '%')
                return -EINVAL;
        for (; *s >= '0' && *s <= '9'; s++) {
                value = value * 10 + (unsigned) (*s - '0');
                if (value > PERCENT_MAX)
                        return -EINVAL;
        }
        if (strcmp(s, "%") != 0 || value == 0)
                return -EINVAL;
        *ret = value;
        return 0;
}

char *percent_format(unsigned percent) {
        char *s;

        if (percent == PERCENT_NONE)
                return strdup("infinity");
        return asprintf(&s, "%u%%", percent) < 0 ? NULL : s;
}
