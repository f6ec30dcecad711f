/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef METRIC_JSON_H
#define METRIC_JSON_H

#include "bus-json.h"
#include "metrics/sink.h"

/*
 * Metrics as systemd has them (io.systemd.Metrics): each sample is an object with the name of its
 * family below org.tlob1, the unit as "object", all other labels as "fields", and a value.
 * Durations are in nanoseconds; one that is infinite is left out. Instead of a histogram there are
 * percentiles, and the longest as that of 1.
 */

/* Owns sample. Returns 0 or a negative errno, with which it is not called again. */
typedef int (*MetricHandler)(void *userdata, json_object *sample);

typedef struct MetricJson {
        MetricHandler handler;
        void *userdata;
        int error; /* 0, or what the handler returned, or -ENOMEM */
} MetricJson;

/* The sink uses json, which must outlive it. */
MetricSink metric_json_sink(MetricJson *json);

/* The family as Describe() has it; NULL for want of memory. */
json_object *metric_json_describe(const MetricFamily *family);

#endif
