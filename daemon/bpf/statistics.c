/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The books of a binding: what the programs have counted, summed up over all CPUs, and what its
 * sites know of their reach. Counters go up as long as the index is in use; a reset only moves the
 * base from which they count.
 */

#include <bpf/bpf.h>

#include "bpf/backend.h"
#include "bpf/hits.h"

#define BOOKS_TRIES 3
#define LANES_TRIES 16

int bpf_entry_clear_maximum(BpfBackend *b, uint32_t index) {
        _cleanup_free_ uint64_t *maxima = NULL;

        maxima = calloc(b->n_cpus, sizeof(*maxima));
        if (!maxima)
                return -ENOMEM;
        return bpf_map_update_elem(bpf_map__fd(b->programs.bpf->maps.maxima), &index, maxima,
                                   BPF_ANY);
}

/* Another binding may have had this index. */
int bpf_entry_clear_books(BpfBackend *b, uint32_t index) {
        _cleanup_free_ struct tlob_books *books = NULL;
        int r;

        books = calloc(b->n_cpus, sizeof(*books));
        if (!books)
                return -ENOMEM;
        r = bpf_map_update_elem(bpf_map__fd(b->programs.bpf->maps.statistics), &index, books,
                                BPF_ANY);
        if (r >= 0)
                r = hits_clear(bpf_map__fd(b->programs.bpf->maps.timer_hits), index, b->n_cpus);
        if (r >= 0)
                r = histogram_table_clear(&b->histograms, index);
        if (r < 0)
                return r;
        return bpf_entry_clear_maximum(b, index);
}

static uint64_t timers_get_cost(const BpfBackend *b, const Entry *entry) {
        return hits_read(bpf_map__fd(b->programs.bpf->maps.timer_hits), entry->user.binding,
                         b->n_cpus, 0) *
               b->price.timer_ns;
}

uint64_t bpf_entry_get_cost(const BpfBackend *b, const Entry *entry) {
        uint64_t cost = site_table_get_cost(&b->start_sites, entry->start_site) +
                        site_table_get_cost(&b->stop_sites, entry->stop_site) +
                        timers_get_cost(b, entry);

        return entry->stop == TLOB_STOP_CALL || entry->has_call_events
                       ? cost + calls_get_cost(&b->calls)
                       : cost;
}

uint64_t bpf_backend_get_cost(const BpfBackend *b) {
        uint64_t cost = site_table_get_total_cost(&b->start_sites) +
                        site_table_get_total_cost(&b->stop_sites) + calls_get_cost(&b->calls);

        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].generation && !b->entries[i].retired)
                        cost += timers_get_cost(b, &b->entries[i]);
        return cost;
}

/*
 * What is in lanes is put into the books while both are read, and must not be in both, or in none:
 * has that happened since that moment, and is it worth another try?
 */
static bool lanes_have_moved(const BpfBackend *b, uint64_t moment, unsigned *tries) {
        return (moment == LANES_UNSETTLED || lane_table_moment(&b->lanes) != moment) &&
               ++*tries < LANES_TRIES;
}

int bpf_entry_read_books(const BpfBackend *b, const Entry *entry, Statistics *statistics) {
        const BooksMaps maps = {
                .statistics_fd = bpf_map__fd(b->programs.bpf->maps.statistics),
                .maxima_fd = bpf_map__fd(b->programs.bpf->maps.maxima),
                .n_cpus = b->n_cpus,
        };
        unsigned tries = 0;
        uint64_t moment;
        Statistics read;
        int r;

        do {
                read = *statistics;
                moment = lane_table_moment(&b->lanes);
                r = books_read(&maps, entry->user.binding, &read);
                if (r < 0)
                        return r;
                lane_table_read(&b->lanes, entry->generation, &read);
        } while (lanes_have_moved(b, moment, &tries));
        *statistics = read;
        return 0;
}

int bpf_entry_read_histogram(const BpfBackend *b, const Entry *entry, Histogram *histogram) {
        unsigned tries = 0;
        uint64_t moment;
        Histogram read;
        int r;

        do {
                read = *histogram;
                moment = lane_table_moment(&b->lanes);
                r = histogram_table_read(&b->histograms, entry->user.binding, &read);
                if (r < 0)
                        return r;
                lane_table_read_lengths(&b->lanes, entry->generation, &read);
        } while (lanes_have_moved(b, moment, &tries));
        *histogram = read;
        return 0;
}

int bpf_entry_reset_histogram(BpfBackend *b, const Entry *entry) {
        uint32_t index = entry->user.binding;
        const Histogram *base = histogram_table_get_base(&b->histograms, index);
        Histogram all = {};
        int r;

        if (base)
                all = *base;
        r = bpf_entry_read_histogram(b, entry, &all);
        return r < 0 ? r : histogram_table_set_base(&b->histograms, index, &all);
}

/*
 * A window that ends after the counters have been read, and before the open ones are counted, would
 * be in neither: they are read again then, unless that goes on all the time.
 */
static int read_books_and_open(BpfBackend *b, const Entry *entry, const SiteReach *reach,
                               uint64_t n_removed, Statistics *ret) {
        for (unsigned tries = 0;; tries++) {
                Statistics statistics = {};
                int r;

                r = bpf_entry_read_books(b, entry, &statistics);
                if (r < 0)
                        return r;
                books_set_reach(&statistics.counters, reach);
                books_subtract(&statistics.counters, &entry->base);
                r = task_table_count(&b->tasks, entry->generation, &statistics.open);
                if (r < 0)
                        return r;
                *ret = statistics;
                if (tries == BOOKS_TRIES ||
                    ret->counters.starts == books_get_ended(&ret->counters) + ret->open + n_removed)
                        return 0;
        }
}

int bpf_entry_read_statistics(BpfBackend *b, const Entry *entry, uint64_t n_removed,
                              Statistics *ret) {
        SiteReach reach;
        int r;

        reach = entry->retired ? entry->reach
                               : site_table_get_reach(&b->start_sites, entry->start_site);
        r = read_books_and_open(b, entry, &reach, n_removed, ret);
        if (r < 0)
                return r;
        ret->cost_ns = entry->retired ? entry->cost_ns
                                      : bpf_entry_get_cost(b, entry) - entry->cost_base_ns;
        for (size_t i = 0; i < TLOB_N_STATES && entry->is_keyed; i++)
                ret->counters.spent_ns[i] = STATISTIC_UNKNOWN;
        /* Of no process since the reset. */
        ret->late_max_ns = ret->counters.processes > 0 ? reach.late_max_ns : 0;
        return 0;
}
