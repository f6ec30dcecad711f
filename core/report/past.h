/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef REPORT_PAST_H
#define REPORT_PAST_H

#include "base/cleanup.h"
#include "base/histogram.h"
#include "report/statistics.h"

/*
 * What was counted of a binding before its probes were set where they are now. Two builds of its
 * file are known: that which was measured last, and the one before it.
 */

/* How long the windows in one build of its file took. */
typedef struct PastBuild {
        char *id; /* NULL: there is none */
        Histogram *lengths;
} PastBuild;

#define PAST_N_BUILDS 2

typedef struct Past {
        Statistics statistics;
        Histogram *lengths;              /* NULL: there were no windows */
        PastBuild builds[PAST_N_BUILDS]; /* of these; the last one first */
        char *told_of; /* a build that is worse than the one before it; NULL: none */
} Past;

/* Frees what it has, and leaves it empty. */
void past_done(Past *past);

/*
 * Windows of these lengths were measured in that build of the file (NULL: it is not known), and are
 * not any more, or anew. Returns 0 or -ENOMEM.
 */
int past_add_lengths(Past *past, const char *build_id, const Histogram *lengths);

/*
 * The same in an older build, which was measured beside that of the last ones: in what order the
 * builds came does not change. Where two newer ones are known, it is none of them.
 */
int past_add_former(Past *past, const char *build_id, const Histogram *lengths);

/* What is older comes first: past is what was before other. Returns 0 or -ENOMEM. */
int past_add(Past *past, const Past *other);

#endif
