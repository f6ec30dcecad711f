/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TRIAL_H
#define TRIAL_H

#include "connection.h"
#include "suggest/candidates.h"

/*
 * Candidates are measured for a while by bindings of their own, which report nothing; what their
 * probes may cost is limited as for all bindings.
 */

typedef struct Measured {
        char *refusal; /* why it cannot be measured; NULL: it was */
        uint64_t n;    /* windows that ended */
        uint64_t p50_ns, p99_ns, p999_ns, max_ns;
        uint64_t spent_ns[3]; /* running, waiting, sleeping */
} Measured;

typedef struct Trial {
        Connection *connection;
        const Candidates *candidates;
        char *names[CANDIDATES_MAX]; /* of the bindings; NULL: there is none */
        Measured measured[CANDIDATES_MAX];
} Trial;

/*
 * Adds a binding for each candidate, confined to the unit, after it has removed those that another
 * tlobctl left behind when it was killed. One that the daemon refuses is noted. Returns 0, or a
 * negative errno after it has said what is wrong.
 */
int trial_begin(Trial *trial, Connection *connection, const Candidates *candidates,
                const char *unit);

/* Reads what they have measured. Returns as above. */
int trial_read(Trial *trial);

/* Removes the bindings. */
void trial_done(Trial *trial);

#endif
