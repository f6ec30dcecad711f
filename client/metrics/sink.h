/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef METRICS_SINK_H
#define METRICS_SINK_H

#include <stdint.h>

#include "base/histogram.h"

/*
 * Where metrics go, whatever their form there. A family is announced before its samples, which
 * stand together.
 */

typedef enum MetricType {
        METRIC_COUNTER,
        METRIC_GAUGE,
        METRIC_LENGTHS, /* of windows: a histogram, or percentiles */
        METRIC_STATE,   /* one of some words */
        METRIC_INFO,    /* any text */
} MetricType;

typedef struct MetricFamily {
        const char *name;   /* for Prometheus, with its unit: "tlob_budget_seconds" */
        const char *member; /* of the interface org.tlob1 in systemd's report: "BudgetNSec" */
        MetricType type;
        const char *help; /* one line of plain text */
} MetricFamily;

/* Names and values in turn; values may be any UTF-8. NULL after the last. */
typedef const char *const *MetricLabels;

/* UINT64_MAX: not known. */
typedef struct MetricLengths {
        const HistogramBucket *buckets;
        size_t n;
        uint64_t sum_ns, max_ns;
} MetricLengths;

typedef struct MetricSink {
        void (*announce)(void *userdata, const MetricFamily *family);
        void (*count)(void *userdata, const MetricFamily *family, MetricLabels labels,
                      uint64_t value);
        void (*ratio)(void *userdata, const MetricFamily *family, MetricLabels labels,
                      double value);
        /* UINT64_MAX is infinity. */
        void (*duration)(void *userdata, const MetricFamily *family, MetricLabels labels,
                         uint64_t ns);
        void (*lengths)(void *userdata, const MetricFamily *family, MetricLabels labels,
                        const MetricLengths *lengths);
        /* One of words, which end with NULL. */
        void (*state)(void *userdata, const MetricFamily *family, MetricLabels labels,
                      const char *const *words, const char *state);
        void (*info)(void *userdata, const MetricFamily *family, const char *label,
                     const char *value);
        void *userdata;
} MetricSink;

#endif
