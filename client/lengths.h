/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LENGTHS_H
#define LENGTHS_H

#include <stddef.h>

#include "base/histogram.h"
#include "bus-json.h"

/* How long the windows of a binding took, from its properties. */

/*
 * From [[upper, count], ...], with null for the upper bound that there is not. Returns how many
 * buckets there are, 0 also for want of memory. The caller frees *ret.
 */
size_t lengths_read_array(const json_object *array, HistogramBucket **ret);

/* The same of the histogram of a binding. */
size_t lengths_read(const json_object *binding, HistogramBucket **ret);

/* How many windows are in these. */
uint64_t lengths_count(const HistogramBucket *buckets, size_t n);

/* The length that so many of 1000 do not pass; UINT64_MAX: there are no windows, or no memory. */
uint64_t lengths_quantile(const json_object *binding, unsigned per_mille);

/* The budget of the lengths: of the total time, and not of a state. UINT64_MAX: none. */
uint64_t lengths_budget(const json_object *binding);

#endif
