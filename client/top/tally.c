/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What bindings have counted, and the difference between two moments. Counters only go up, unless
 * somebody resets them or tlobd has lost them: then nothing is known of the time between, and that
 * is said rather than a number that is too high. It knows neither bus nor screen.
 */

#include "top/tally.h"

void tally_done(Tally *tally) {
        free(tally->name);
        free(tally->unit);
        free(tally->state);
        free(tally->lengths);
}

void tallies_done(Tallies *tallies) {
        for (size_t i = 0; i < tallies->n; i++)
                tally_done(tallies->tallies + i);
        free(tallies->tallies);
        *tallies = (Tallies) {};
}

static int compare_name(const void *name, const void *tally) {
        return strcmp(name, ((const Tally *) tally)->name);
}

const Tally *tallies_find(const Tallies *tallies, const char *name) {
        return tallies->n == 0 ? NULL
                               : bsearch(name, tallies->tallies, tallies->n,
                                         sizeof(*tallies->tallies), compare_name);
}

static uint64_t count_lengths(const Tally *tally) {
        uint64_t sum = 0;

        for (size_t i = 0; i < tally->n_lengths; i++)
                sum += tally->lengths[i].count;
        return sum;
}

static bool has_gone_back(uint64_t before, uint64_t now) {
        return before != UINT64_MAX && now < before;
}

static bool is_later(const Tally *before, const Tally *now) {
        return !has_gone_back(before->windows, now->windows) &&
               !has_gone_back(before->violations, now->violations) &&
               !has_gone_back(count_lengths(before), count_lengths(now));
}

/* What the probes took begins at zero with each tlobd. */
static void add_difference(uint64_t *sum, uint64_t before, uint64_t now) {
        if (before == UINT64_MAX || now == UINT64_MAX || *sum == UINT64_MAX || now < before)
                *sum = UINT64_MAX;
        else
                *sum += now - before;
}

/* The longest of those lengths: an upper bound, unless it is the longest of all that ever were. */
static uint64_t longest(const Histogram *lengths, const Tally *before, const Tally *now) {
        bool is_new = now->max_ns != UINT64_MAX && now->max_ns > before->max_ns;

        for (size_t i = TLOB_BUCKETS; i-- > 0;)
                if (lengths->counts[i] > 0) {
                        uint64_t bound = histogram_upper_bound(i);

                        return is_new || bound > now->max_ns ? now->max_ns : bound;
                }
        return 0;
}

static void add_lengths(Change *change, const Tally *before, const Tally *now) {
        Histogram lengths = {};
        uint64_t max_ns;

        for (size_t i = 0; i < now->n_lengths; i++)
                lengths.counts[histogram_bucket(now->lengths[i].upper_ns)] += now->lengths[i].count;
        for (size_t i = 0; i < before->n_lengths; i++) {
                uint64_t *count = lengths.counts + histogram_bucket(before->lengths[i].upper_ns);

                *count -= before->lengths[i].count < *count ? before->lengths[i].count : *count;
        }
        histogram_add(&change->lengths, &lengths);
        max_ns = longest(&lengths, before, now);
        if (max_ns > change->max_ns)
                change->max_ns = max_ns;
}

void change_add(Change *change, const Tally *before, const Tally *now) {
        if (!before || !is_later(before, now))
                return;
        change->is_known = true;
        add_difference(&change->windows, before->windows, now->windows);
        add_difference(&change->violations, before->violations, now->violations);
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                add_difference(change->spent_ns + i, before->spent_ns[i], now->spent_ns[i]);
        add_difference(&change->probes_ns, before->probes_ns, now->probes_ns);
        add_lengths(change, before, now);
}

uint64_t change_quantile(const Change *change, unsigned per_mille) {
        HistogramBucket buckets[TLOB_BUCKETS];
        size_t n = 0;

        for (size_t i = 0; i < TLOB_BUCKETS; i++)
                if (change->lengths.counts[i] > 0)
                        buckets[n++] = (HistogramBucket) {
                                .upper_ns = histogram_upper_bound(i),
                                .count = change->lengths.counts[i],
                        };
        return histogram_quantile(buckets, n, per_mille, change->max_ns);
}
