/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "metric-json.h"

#include "tlob-bus.h"

/* Enough for a label more than those of MetricLabels. */
#define LABELS_MAX 8

static int add_name(json_object *object, const MetricFamily *family) {
        char name[64];

        (void) snprintf(name, sizeof(name), TLOB_BUS_NAME ".%s", family->member);
        return json_add_string(object, "name", name);
}

/* What there is of a label: a binding need not have a unit. */
static int add_labels(json_object *sample, MetricLabels labels) {
        _cleanup_json_ json_object *fields = json_object_new_object();
        int r = fields ? 0 : -ENOMEM;

        for (; r >= 0 && *labels; labels += 2) {
                if (*labels[1] == '\0')
                        continue;
                r = streq(labels[0], "unit") ? json_add_string(sample, "object", labels[1])
                                             : json_add_string(fields, labels[0], labels[1]);
        }
        if (r >= 0 && json_object_object_length(fields) > 0)
                r = json_add(sample, "fields", TAKE_PTR(fields));
        return r;
}

/* Owns value; NULL: there was no memory for it. */
static int make_sample(const MetricFamily *family, MetricLabels labels, json_object *value,
                       json_object **ret) {
        _cleanup_json_ json_object *sample = json_object_new_object(), *owned = value;
        int r;

        if (!sample || !value)
                return -ENOMEM;
        r = add_name(sample, family);
        if (r >= 0)
                r = add_labels(sample, labels);
        if (r >= 0)
                r = json_add(sample, "value", TAKE_PTR(owned));
        if (r >= 0)
                *ret = TAKE_PTR(sample);
        return r;
}

static void give(MetricJson *json, const MetricFamily *family, MetricLabels labels,
                 json_object *value) {
        json_object *sample;

        if (json->error < 0) {
                json_object_put(value);
                return;
        }
        json->error = make_sample(family, labels, value, &sample);
        if (json->error >= 0)
                json->error = json->handler(json->userdata, sample);
}

static void announce(void *userdata, const MetricFamily *family) {
}

static void give_count(void *userdata, const MetricFamily *family, MetricLabels labels,
                       uint64_t value) {
        give(userdata, family, labels, json_object_new_uint64(value));
}

static void give_ratio(void *userdata, const MetricFamily *family, MetricLabels labels,
                       double value) {
        give(userdata, family, labels, json_object_new_double(value));
}

static void give_duration(void *userdata, const MetricFamily *family, MetricLabels labels,
                          uint64_t ns) {
        if (ns != UINT64_MAX)
                give_count(userdata, family, labels, ns);
}

static void give_quantile(void *userdata, const MetricFamily *family, MetricLabels labels,
                          const char *quantile, uint64_t ns) {
        const char *all[LABELS_MAX + 3];
        size_t n = 0;

        for (; n < LABELS_MAX && labels[n]; n++)
                all[n] = labels[n];
        all[n++] = "quantile";
        all[n++] = quantile;
        all[n] = NULL;
        give_duration(userdata, family, all, ns);
}

static void give_lengths(void *userdata, const MetricFamily *family, MetricLabels labels,
                         const MetricLengths *lengths) {
        static const struct {
                const char *quantile;
                unsigned per_mille;
        } quantiles[] = { { "0.5", 500 }, { "0.9", 900 }, { "0.99", 990 }, { "0.999", 999 } };

        if (lengths->n == 0)
                return;
        for (size_t i = 0; i < ELEMENTSOF(quantiles); i++)
                give_quantile(userdata, family, labels, quantiles[i].quantile,
                              histogram_quantile(lengths->buckets, lengths->n,
                                                 quantiles[i].per_mille, lengths->max_ns));
        give_quantile(userdata, family, labels, "1", lengths->max_ns);
}

static void give_state(void *userdata, const MetricFamily *family, MetricLabels labels,
                       const char *const *words, const char *state) {
        give(userdata, family, labels, json_object_new_string(state));
}

static void give_info(void *userdata, const MetricFamily *family, const char *label,
                      const char *value) {
        give(userdata, family, (const char *const[]) { NULL }, json_object_new_string(value));
}

MetricSink metric_json_sink(MetricJson *json) {
        return (MetricSink) {
                .announce = announce,
                .count = give_count,
                .ratio = give_ratio,
                .duration = give_duration,
                .lengths = give_lengths,
                .state = give_state,
                .info = give_info,
                .userdata = json,
        };
}

json_object *metric_json_describe(const MetricFamily *family) {
        static const char *const types[] = {
                [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_LENGTHS] = "gauge",
                [METRIC_STATE] = "string",    [METRIC_INFO] = "string",
        };
        _cleanup_json_ json_object *object = json_object_new_object();

        if (!object || add_name(object, family) < 0 ||
            json_add_string(object, "description", family->help) < 0 ||
            json_add_string(object, "type", types[family->type]) < 0)
                return NULL;
        return TAKE_PTR(object);
}
