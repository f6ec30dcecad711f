/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How many reports of a binding are made in an interval. It counts what it lets through; the
 * caller counts and announces what is held back. It reads no clock and sets no timer: an interval
 * ends when something comes after its end.
 */

#include "binding/rate-limit.h"

bool rate_limit_admit(RateLimit *limit, uint64_t interval_ns, unsigned burst, uint64_t now_ns) {
        if (interval_ns == 0 || burst == 0)
                return true;

        if (limit->count == 0 || now_ns - limit->begin_ns >= interval_ns)
                *limit = (RateLimit) { .begin_ns = now_ns };
        if (limit->count >= burst)
                return false;
        limit->count++;
        return true;
}
