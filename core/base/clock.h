/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/*
 * Clocks, read. All times are CLOCK_MONOTONIC where nothing else is said, as in the BPF programs.
 */

static inline uint64_t clock_read_ns(clockid_t clock) {
        struct timespec now = {};

        (void) clock_gettime(clock, &now);
        return (uint64_t) now.tv_sec * 1000000000U + (uint64_t) now.tv_nsec;
}

static inline uint64_t now_ns(void) {
        return clock_read_ns(CLOCK_MONOTONIC);
}

static inline uint64_t now_usec(void) {
        return now_ns() / 1000;
}

#endif
