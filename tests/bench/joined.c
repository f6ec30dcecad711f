/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "joined.h"

#include <stdlib.h>

#define TLOB_MARK_JOIN
#define TLOB_MARK_SOCKET getenv("TLOB_BENCH_MARKS")
#include "tlob-mark.h"

TLOB_MARK(joined);
TLOB_MARK(over);
TLOB_MARK(late);

#define WORK() __asm__ volatile("" ::: "memory")

void joined_loop(unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                tlob_begin(joined);
                WORK();
                tlob_end(joined);
        }
}

void joined_begin(void) {
        tlob_begin(joined);
}

void joined_end(void) {
        tlob_end(joined);
}

void joined_spin(void) {
        uint64_t end_ns = tlob_now_() + JOINED_SPIN_NS;

        while (tlob_now_() < end_ns)
                ;
}

void joined_over(void) {
        tlob_begin(over);
        joined_spin();
        tlob_end(over);
}

void joined_late(void (*work)(void)) {
        tlob_begin(late);
        work();
        tlob_end(late);
}

static bool is_quick(struct tlob_mark *mark) {
        const struct tlob_lane_mark *m = tlob_lane_mark_(tlob_lane_of_thread_(), mark);

        return m && m->budget_ns && m->until_ns > tlob_now_();
}

bool joined_is_quick(void) {
        return is_quick(&tlob_mark_joined);
}

void joined_clock(unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                WORK();
                (void) tlob_now_();
                WORK();
                (void) tlob_now_();
        }
}
