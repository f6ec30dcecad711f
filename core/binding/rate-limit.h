/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_RATE_LIMIT_H
#define BINDING_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* What was let through in the interval that runs. All zero: nothing yet. */
typedef struct RateLimit {
        unsigned count;
        uint64_t begin_ns; /* valid with count */
} RateLimit;

/*
 * True if one more is within the limit, and then it counts: at most burst in an interval, which
 * begins with the first of them. An interval or a burst of 0 is no limit, and nothing is counted.
 * now_ns is of any clock, always the same one.
 */
bool rate_limit_admit(RateLimit *limit, uint64_t interval_ns, unsigned burst, uint64_t now_ns);

#endif
