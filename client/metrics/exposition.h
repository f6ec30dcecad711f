/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef METRICS_EXPOSITION_H
#define METRICS_EXPOSITION_H

#include <stdio.h>

#include "metrics/sink.h"

/*
 * The text format of Prometheus, version 0.0.4, which OpenMetrics, node_exporter and the collectors
 * of others read, too. Durations are in seconds, without a loss.
 *
 * The buckets of lengths end at the greatest length below each power of two from 1024 ns to 69 s,
 * where buckets of ours end, too. So they are always the same, and no length is in a wrong one. A
 * sum that is not known is a NaN.
 */
MetricSink exposition_sink(FILE *f);

#endif
