/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef METRIC_SOURCE_H
#define METRIC_SOURCE_H

#include <json-c/json.h>

#include "metrics/sink.h"
#include "verbs.h"

/*
 * What tlobd and the bindings have counted: the one list of metrics, which all forms of it are made
 * from.
 */

/* No manager: tlobd did not answer. */
typedef struct MetricAnswer {
        json_object *manager, *bindings;
} MetricAnswer;

/*
 * Asks tlobd, for the bindings that --unit= and --binding= select. Returns 0, or a negative errno
 * after it has said what is wrong (see connection_was_refused()); then *answer is as before.
 */
int metric_source_ask(Client *client, MetricAnswer *answer);
void metric_answer_done(MetricAnswer *answer);

/*
 * Gives all metrics to a sink, those first that matter most: some readers stop after some thousand.
 * Returns 0 or -ENOMEM.
 */
int metric_source_list(const MetricAnswer *answer, const MetricSink *sink);

/* All families that there can be. NULL after the last. */
const MetricFamily *metric_source_family(size_t i);

#endif
