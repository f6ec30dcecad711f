/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bpf/books.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

static void add(struct tlob_books *books, const struct tlob_books *more) {
        const uint64_t *from = (const uint64_t *) more;
        uint64_t *to = (uint64_t *) books;

        for (size_t i = 0; i < sizeof(*books) / sizeof(*to); i++)
                to[i] += from[i];
}

void books_sum(const struct tlob_books *per_cpu, size_t n_cpus, Counters *ret) {
        struct tlob_books sum = {};

        for (size_t cpu = 0; cpu < n_cpus; cpu++)
                add(&sum, &per_cpu[cpu]);
        *ret = (Counters) {
                .starts = sum.starts,
                .in_budget = sum.in_budget,
                .violated = sum.violated,
                .over_limit = sum.over_limit,
                .nested = sum.nested,
                .unmatched = sum.unmatched,
                .violations = sum.violations,
                .lost = sum.lost,
                .suppressed = sum.suppressed,
                .untrapped = sum.untrapped,
        };
        memcpy(ret->ended, sum.ended, sizeof(ret->ended));
        memcpy(ret->spent_ns, sum.spent_ns, sizeof(ret->spent_ns));
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                ret->elapsed_ns += sum.spent_ns[i];
}

int books_read(const BooksMaps *maps, uint32_t index, Statistics *statistics) {
        _cleanup_free_ struct tlob_books *books = NULL;
        _cleanup_free_ uint64_t *maxima = NULL;

        books = calloc(maps->n_cpus, sizeof(*books));
        maxima = calloc(maps->n_cpus, sizeof(*maxima));
        if (!books || !maxima)
                return -ENOMEM;
        if (bpf_map_lookup_elem(maps->statistics_fd, &index, books) < 0 ||
            bpf_map_lookup_elem(maps->maxima_fd, &index, maxima) < 0)
                return -errno;
        books_sum(books, maps->n_cpus, &statistics->counters);
        for (size_t cpu = 0; cpu < maps->n_cpus; cpu++)
                if (maxima[cpu] > statistics->max_ns)
                        statistics->max_ns = maxima[cpu];
        return 0;
}

void books_set_reach(Counters *counters, const SiteReach *reach) {
        counters->outside = reach->n_outside;
        counters->processes = reach->n_admitted;
        counters->processes_missed = reach->n_missed;
        counters->late_ns = reach->late_ns;
}

uint64_t books_get_ended(const Counters *counters) {
        uint64_t ended = counters->in_budget + counters->violated + counters->over_limit;

        for (size_t i = 0; i < TLOB_N_ENDS; i++)
                ended += counters->ended[i];
        return ended;
}

uint64_t books_get_open(const Counters *counters) {
        uint64_t ended = books_get_ended(counters);

        return counters->starts > ended ? counters->starts - ended : 0;
}

void books_subtract(Counters *counters, const Counters *base) {
        const uint64_t *from = (const uint64_t *) base;
        uint64_t *to = (uint64_t *) counters;

        for (size_t i = 0; i < sizeof(*counters) / sizeof(*to); i++)
                to[i] -= from[i];
}

void books_subtract_gone(Counters *counters, const Counters *base) {
        Counters counted = *base;

        books_set_reach(counters, &(SiteReach) {});
        books_set_reach(&counted, &(SiteReach) {});
        books_subtract(counters, &counted);
}
