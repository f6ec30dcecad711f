/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/words.h"

/*
 * How long windows took: a log-linear histogram, as kept by the BPF programs (see TLOB_BUCKETS).
 * The upper bound of a bucket is at most 6.25 % above any length in it.
 */

typedef struct Histogram {
        uint64_t counts[TLOB_BUCKETS];
} Histogram;

static inline Histogram *histogram_free(Histogram *histogram) {
        free(histogram);
        return NULL;
}
DEFINE_CLEANUP(Histogram, histogram_free);

void histogram_add(Histogram *histogram, const Histogram *other);

/* How many lengths there are in that bucket and those above it; 0: in all. */
uint64_t histogram_count(const Histogram *histogram, size_t bucket);

/* The bucket that a length falls into, as in the BPF programs. */
size_t histogram_bucket(uint64_t ns);

/* The greatest length in a bucket, in ns; of the last one UINT64_MAX. */
uint64_t histogram_upper_bound(size_t bucket);

/* As on D-Bus: an upper bound and how many there are up to it, and above the bucket before. */
typedef struct HistogramBucket {
        uint64_t upper_ns;
        uint64_t count;
} HistogramBucket;

/*
 * The length that so many of 1000 windows do not pass: an upper bound, and no more than max_ns, the
 * longest. UINT64_MAX: there are no windows.
 */
uint64_t histogram_quantile(const HistogramBucket *buckets, size_t n, unsigned per_mille,
                            uint64_t max_ns);

#endif
