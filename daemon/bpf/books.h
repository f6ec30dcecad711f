/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_BOOKS_H
#define BPF_BOOKS_H

#include "bpf/layout.h"
#include "bpf/site.h"
#include "report/statistics.h"

/* From what the programs and the sites have counted to the counters of a binding. */

/* Where the programs count; the descriptors are not owned. */
typedef struct BooksMaps {
        int statistics_fd;
        int maxima_fd;
        size_t n_cpus;
} BooksMaps;

/*
 * Adds to empty statistics what was counted of the binding at that index since the maps are there:
 * the longest window, and all counters but those of the reach. Returns 0 or a negative errno.
 */
int books_read(const BooksMaps *maps, uint32_t index, Statistics *statistics);

/* Of the programs, on all CPUs: all counters but those of the reach. */
void books_sum(const struct tlob_books *per_cpu, size_t n_cpus, Counters *ret);

/* The counters of the reach. */
void books_set_reach(Counters *counters, const SiteReach *reach);

/* Windows that have ended, in whatever way, or were over the limit. */
uint64_t books_get_ended(const Counters *counters);

/* Windows that have begun and not ended, by the counters alone. */
uint64_t books_get_open(const Counters *counters);

void books_subtract(Counters *counters, const Counters *base);

/*
 * The same of a binding whose sites are not there any more: how far they reached is not known, and
 * counts as nothing.
 */
void books_subtract_gone(Counters *counters, const Counters *base);

#endif
