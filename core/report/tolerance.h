/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef REPORT_TOLERANCE_H
#define REPORT_TOLERANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How many of a binding's windows may be over their budget, in the time that went by last: a
 * service level objective. Of few windows no share can be told: "3/100" lets three be over among
 * the first hundred, however many there have been.
 */

#define TOLERANCE_OF_MAX  UINT64_C(1000000)
#define TOLERANCE_SAMPLES 62

typedef struct Tolerance {
        uint64_t allowed; /* 0: nothing is configured */
        uint64_t of;
} Tolerance;

/* "3/100", "1%", "0.05%". Returns 0, or -EINVAL: it is neither, or none or all would be allowed. */
int tolerance_parse(const char *s, Tolerance *ret);

/* What a binding has counted by that time. */
typedef struct ToleranceSample {
        uint64_t ns; /* CLOCK_MONOTONIC */
        uint64_t windows;
        uint64_t violations;
} ToleranceSample;

/*
 * Samples of the time that went by last, and what they come to. The first one is what the others
 * are compared with; zero initialized, there are none.
 */
typedef struct ToleranceTrack {
        ToleranceSample samples[TOLERANCE_SAMPLES];
        size_t first, n;
        uint64_t windows;
        uint64_t violations;
        bool is_broken;
} ToleranceTrack;

/* The time between two samples that are kept. */
uint64_t tolerance_step(uint64_t window_ns);

/*
 * Takes note of now, and judges the last window_ns: broken is what is over the tolerance, and kept
 * again what is a tenth below it. Counters that go back begin anew, and with them the time; what is
 * broken stays so until there are enough windows to tell, or all of the time is over. Returns
 * whether the verdict has changed.
 */
bool tolerance_update(ToleranceTrack *track, const Tolerance *tolerance, uint64_t window_ns,
                      const ToleranceSample *now);

/*
 * How fast what is tolerated is used up: at 1, all of it in the time that it is for; at 2, in half
 * of that. 0 where nothing is configured.
 */
double tolerance_burn_rate(const ToleranceTrack *track, const Tolerance *tolerance);

/*
 * "4 of 90 windows over budget in 1h; 3/100 are tolerated (burn rate 1.33)". tolerance: as it was
 * written. Owned by the caller; NULL for want of memory.
 */
char *tolerance_describe(uint64_t violations, uint64_t windows, uint64_t window_ns,
                         const char *tolerance, double burn_rate);

#endif
