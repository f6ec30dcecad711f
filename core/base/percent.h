/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_PERCENT_H
#define BASE_PERCENT_H

#include <limits.h>

/* Shares of one CPU, as systemd writes them: "50%", more than 100% for several, "infinity". */

#define PERCENT_NONE UINT_MAX /* "infinity" */
#define PERCENT_MAX  1000000

/* Returns 0, or -EINVAL: it is no such share, or out of 1% to PERCENT_MAX. */
int percent_parse(const char *s, unsigned *ret);

/* The caller's; NULL: there is no memory. */
char *percent_format(unsigned percent);

#endif
