/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "joined.h"

#include <stdlib.h>

#define TLOB_MARK_JOIN
#define TLOB_MARK_SOCKET getenv("TLOB_BENCH_MARKS")
#include "tlob-mark.h"

TLOB_MARK(joined);

#define WORK() __asm__ volatile("" ::: "memory")

void joined_loop(unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                tlob_begin(joined);
                WORK();
                tlob_end(joined);
        }
}

bool joined_is_quick(void) {
        const struct tlob_lane_mark *m = tlob_lane_mark_(tlob_lane_of_thread_(), &tlob_mark_joined);

        return m && m->budget_ns && m->until_ns > tlob_now_();
}

void joined_clock(unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                WORK();
                (void) tlob_now_();
                WORK();
                (void) tlob_now_();
        }
}
