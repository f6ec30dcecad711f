/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef REPORT_STATISTICS_H
#define REPORT_STATISTICS_H

#include <stdint.h>

#include "base/words.h"

/* The books of one binding, as back ends keep them and everybody shows them. */

#define STATISTIC_UNKNOWN UINT64_MAX /* in any field: this back end cannot know */

/*
 * 64-bit words without exception. They balance at any moment of rest:
 * starts = in_budget + violated + open windows + ended[] + over_limit, where in_budget and violated
 * are windows that ended by their stop, and ended[] counts every other end.
 */
typedef struct Counters {
        uint64_t starts;
        uint64_t in_budget;
        uint64_t violated;
        uint64_t ended[TLOB_N_ENDS]; /* [TLOB_END_STOP] stays 0: those are the two above */
        uint64_t over_limit;         /* no room: too many windows on the task, or too many tasks */
        uint64_t nested;             /* starts inside an open window of the same binding */
        uint64_t unmatched;          /* stops without an open window */
        uint64_t violations;         /* each counted when it is found */
        uint64_t lost;               /* reports for which there was no room */
        uint64_t suppressed; /* violations without a report: more than the limit lets through */
        uint64_t untrapped;  /* of in_budget: of marks, and measured without a trap */
        /* by windows that ended, but for those that were abandoned or switched */
        uint64_t spent_ns[TLOB_N_STATES];
        uint64_t elapsed_ns;       /* all of it, also where the states are not known */
        uint64_t outside;          /* hits of the start by tasks that no binding there is for */
        uint64_t processes;        /* got probes of their own */
        uint64_t processes_missed; /* got none: they had ended before, or the kernel refused */
        uint64_t late_ns;          /* from when they were seen to when they had them, in all */
} Counters;

typedef struct Statistics {
        Counters counters;
        uint64_t open;        /* windows open now */
        uint64_t max_ns;      /* the longest window that ended */
        uint64_t late_max_ns; /* the longest that a process went without probes of its own */
        uint64_t cost_ns;     /* CPU time that its probes have taken, of whoever ran into them */
} Statistics;

/* The sum of two counters; unknown when one of them is. */
uint64_t statistic_add(uint64_t a, uint64_t b);

/* Adds what another stretch of time has counted; open windows are not carried over. */
void statistics_add(Statistics *statistics, const Statistics *past);

#endif
