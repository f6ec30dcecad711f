/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILTER_H
#define FILTER_H

#include <stdbool.h>

#include "cleanup.h"
#include "options.h"

/* --unit= and --binding=: which bindings or violations are shown. */
typedef struct Filter {
        char *unit;          /* a pattern; NULL: any */
        const char *binding; /* a pattern, not owned; NULL: any */
} Filter;

/* Returns 0 or -ENOMEM. The options must outlive the filter. */
int filter_init(Filter *filter, const Options *options);
void filter_done(Filter *filter);

bool filter_matches(const Filter *filter, const char *binding, const char *unit);

/* "nginx" -> "nginx.service", as systemctl does. Owned by the caller; NULL for want of memory. */
char *unit_name_complete(const char *unit);

#endif
