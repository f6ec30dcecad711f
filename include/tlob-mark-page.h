/* SPDX-License-Identifier: MIT */
#ifndef TLOB_MARK_PAGE_H
#define TLOB_MARK_PAGE_H

/*
 * What a program shares with tlobd when its marks are measured without traps (TLOB_MARK_JOIN in
 * tlob-mark.h): an array of lanes, of which each thread takes one. Nobody but tlob-mark.h and tlobd
 * has to know it. Its layout stays what it is: another one would be asked for by another name.
 *
 * A window that begins and ends while its thread keeps its CPU, within its budget, is written down
 * here by the thread alone, as two readings of the clock. As soon as the thread leaves its CPU, or
 * the budget is over, the kernel takes the window over ("adopted"): from then on it is one as any
 * other, and its end is told by a trap.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC.
 */

#define TLOB_LANES         32  /* of a process */
#define TLOB_LANE_MARKS    4   /* that a lane has room for */
#define TLOB_LANE_BITS     32  /* windows as long as two to that end by a trap */
#define TLOB_LANE_BUCKETS  464 /* of windows that are shorter: 16 for each power of two */
#define TLOB_LANE_LEASE_NS 1000000000ULL

/* How far a lane has come. */
#define TLOB_LANE_FREE    0
#define TLOB_LANE_CLAIMED 1 /* a thread has taken it, and the kernel does not know that yet */
#define TLOB_LANE_HELD    2 /* it does */
#define TLOB_LANE_AWAY    3 /* another task than that thread uses its memory, as after vfork() */

/*
 * In a register at the begin of a window that traps: in which page, which lane there, and which
 * mark. An ordinary value is not mistaken for one: who has no such page and lane is not believed.
 */
#define TLOB_LANE_WORD(tag, lane, mark)                                                            \
        (0x746c6f0000000000ULL | (unsigned long long) (tag) << 16 | (lane) << 8 | (mark))
#define TLOB_LANE_WORD_IS(word)   (((word) >> 40) == 0x746c6fULL)
#define TLOB_LANE_WORD_TAG(word)  (((word) >> 16) & TLOB_LANE_TAG_MAX)
#define TLOB_LANE_WORD_LANE(word) (((word) >> 8) & 0xff)
#define TLOB_LANE_WORD_MARK(word) ((word) & 0xff)
#define TLOB_LANE_TAG_MAX         0xffffff

struct tlob_lane_mark {
        /* The thread's. */
        unsigned long long start_ns; /* 0: it is just being read */
        unsigned int taken;          /* 1: a window has begun; 2: by a trap, so it ends by one */
        unsigned int open;           /* from before start_ns is read, to after its end is */
        unsigned int adopted;        /* the kernel has it, and writes so, while it is open */
        unsigned int nested;
        /* Of windows that have ended here; how many those are, lengths[] says. */
        unsigned long long is_used;
        unsigned long long total_ns;
        unsigned long long longest_ns;

        /* The kernel's. */
        unsigned long long budget_ns; /* 0: what is open is nobody's */
        unsigned long long until_ns;  /* a window that begins later traps, and so asks again */
        unsigned long long reserved[8];
};

struct tlob_lane {
        unsigned int holder; /* TLOB_LANE_FREE ... */
        unsigned int tag;    /* of its page; tlobd has written it */
        unsigned int reserved[30];
        struct tlob_lane_mark marks[TLOB_LANE_MARKS];
        unsigned long long lengths[TLOB_LANE_MARKS][TLOB_LANE_BUCKETS];
        unsigned long long rest[112];
};

#endif
