/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TRIAL_H
#define TRIAL_H

#include "connection.h"
#include "suggest/candidates.h"

/*
 * Candidates are measured for a while by bindings of their own, which report nothing. One after the
 * other: what is measured costs something, and is part of what is measured around it.
 */

typedef struct Measured {
        bool was_tried;
        char *refusal; /* why it cannot be measured; NULL: it was */
        uint64_t n;    /* windows that ended */
        uint64_t p50_ns, p99_ns, p999_ns, max_ns;
        uint64_t spent_ns[3]; /* running, waiting, sleeping */
        uint64_t probes_ns;   /* what the probes took meanwhile */
} Measured;

typedef struct Trial {
        Connection *connection;
        const Candidates *candidates;
        char *name; /* of the binding that measures now, or may do so; NULL: there is none */
        Measured measured[CANDIDATES_MAX];
} Trial;

/*
 * Removes bindings that another tlobctl left behind when it was killed. Returns 0, or a negative
 * errno after it has said what is wrong.
 */
int trial_init(Trial *trial, Connection *connection, const Candidates *candidates);

/*
 * Adds a binding for a candidate, confined to the unit. That the daemon refuses it is noted.
 * Returns 1, 0 if it was refused, or an error as above.
 */
int trial_begin(Trial *trial, size_t candidate, const char *unit);

/* Reads what it has measured, and removes it. Returns as trial_init(). */
int trial_end(Trial *trial, size_t candidate);

/* Removes what is there. */
void trial_done(Trial *trial);

#endif
