/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TOP_TALLY_H
#define TOP_TALLY_H

#include <stdbool.h>

#include "base/histogram.h"
#include "base/words.h"

/* What a binding has counted up to a moment. UINT64_MAX: not known. */
typedef struct Tally {
        char *name, *unit, *state; /* owned */
        uint64_t budget_ns;
        uint64_t windows, violations; /* begun; found */
        uint64_t open;
        uint64_t spent_ns[TLOB_N_STATES]; /* by windows that have ended, as are the lengths */
        uint64_t max_ns;
        uint64_t probes_ns;
        HistogramBucket *lengths; /* owned; ascending */
        size_t n_lengths;
} Tally;

/* That of all bindings at the same time, in the order of their names. */
typedef struct Tallies {
        uint64_t time_ns;
        Tally *tallies;
        size_t n;
} Tallies;

void tally_done(Tally *tally);
void tallies_done(Tallies *tallies);

/* NULL: there is no such binding. */
const Tally *tallies_find(const Tallies *tallies, const char *name);

/* What was counted between two moments, by one binding or by several. */
typedef struct Change {
        bool is_known; /* there is a moment before, and nothing was set to zero since */
        uint64_t windows, violations; /* UINT64_MAX: not known, nor are the next two */
        uint64_t spent_ns[TLOB_N_STATES];
        uint64_t probes_ns;
        uint64_t max_ns; /* 0: no window has ended */
        Histogram lengths;
} Change;

/* Adds what one binding has counted since: before is NULL if there is no moment before. */
void change_add(Change *change, const Tally *before, const Tally *now);

/* The length that so many of 1000 windows do not pass; UINT64_MAX: no window has ended. */
uint64_t change_quantile(const Change *change, unsigned per_mille);

#endif
