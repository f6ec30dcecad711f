/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/histogram.h"

#define SUB_BUCKETS (1U << TLOB_SUB_BUCKET_BITS)

void histogram_add(Histogram *histogram, const Histogram *other) {
        for (size_t i = 0; i < TLOB_BUCKETS; i++)
                histogram->counts[i] += other->counts[i];
}

uint64_t histogram_count(const Histogram *histogram, size_t bucket) {
        uint64_t n = 0;

        for (; bucket < TLOB_BUCKETS; bucket++)
                n += histogram->counts[bucket];
        return n;
}

size_t histogram_bucket(uint64_t ns) {
        unsigned log2;
        size_t bucket;

        if (ns < SUB_BUCKETS)
                return ns;
        log2 = 63 - (unsigned) __builtin_clzll(ns);
        bucket = ((log2 - TLOB_SUB_BUCKET_BITS + 1) << TLOB_SUB_BUCKET_BITS) +
                 ((ns >> (log2 - TLOB_SUB_BUCKET_BITS)) & (SUB_BUCKETS - 1));
        return bucket < TLOB_BUCKETS ? bucket : TLOB_BUCKETS - 1;
}

uint64_t histogram_upper_bound(size_t bucket) {
        unsigned shift;

        if (bucket < SUB_BUCKETS)
                return bucket;
        if (bucket >= TLOB_BUCKETS - 1)
                return UINT64_MAX;
        shift = (unsigned) (bucket >> TLOB_SUB_BUCKET_BITS) - 1;
        return ((SUB_BUCKETS + (bucket & (SUB_BUCKETS - 1)) + UINT64_C(1)) << shift) - 1;
}

uint64_t histogram_quantile(const HistogramBucket *buckets, size_t n, unsigned per_mille,
                            uint64_t max_ns) {
        uint64_t total = 0, seen = 0, rank;

        for (size_t i = 0; i < n; i++)
                total += buckets[i].count;
        if (total == 0)
                return UINT64_MAX;

        /* Rounded up: the 99.9th percentile of ten windows is the longest. */
        rank = total / 1000 * per_mille + (total % 1000 * per_mille + 999) / 1000;
        for (size_t i = 0; i < n; i++) {
                seen += buckets[i].count;
                if (seen >= rank)
                        return buckets[i].upper_ns < max_ns ? buckets[i].upper_ns : max_ns;
        }
        return max_ns;
}
