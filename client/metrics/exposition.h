/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef METRICS_EXPOSITION_H
#define METRICS_EXPOSITION_H

#include <stdint.h>
#include <stdio.h>

#include "base/histogram.h"

/*
 * The text format of Prometheus, version 0.0.4, which OpenMetrics, node_exporter and the collectors
 * of others read, too. All samples of a metric stand together, behind what it is.
 */

typedef enum MetricType {
        METRIC_COUNTER,
        METRIC_GAUGE,
        METRIC_HISTOGRAM,
} MetricType;

/* help: one line of plain text. */
void metric_declare(FILE *f, const char *name, MetricType type, const char *help);

/* Names and values in turn; values may be any UTF-8. NULL after the last. */
typedef const char *const *MetricLabels;

void metric_count(FILE *f, const char *name, MetricLabels labels, uint64_t value);

void metric_ratio(FILE *f, const char *name, MetricLabels labels, double value);

/* In seconds, without a loss. UINT64_MAX is infinity. */
void metric_duration(FILE *f, const char *name, MetricLabels labels, uint64_t ns);

/*
 * Lengths, in seconds, and their sum (UINT64_MAX: not known, which is a NaN): its buckets end at
 * the greatest length below each power of two from 1024 ns to 69 s, where buckets of ours end, too.
 * So they are always the same, and no length is in a wrong one.
 */
void metric_histogram(FILE *f, const char *name, MetricLabels labels,
                      const HistogramBucket *buckets, size_t n, uint64_t sum_ns);

#endif
