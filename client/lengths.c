/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "lengths.h"

size_t lengths_read_array(const json_object *array, HistogramBucket **ret) {
        size_t n = json_length(array);
        HistogramBucket *buckets = calloc(n + 1, sizeof(*buckets));

        for (size_t i = 0; buckets && i < n; i++) {
                json_object *pair = json_item(array, i), *upper = json_item(pair, 0);

                buckets[i] = (HistogramBucket) {
                        .upper_ns = upper ? json_object_get_uint64(upper) : UINT64_MAX,
                        .count = json_object_get_uint64(json_item(pair, 1)),
                };
        }
        *ret = buckets;
        return buckets ? n : 0;
}

size_t lengths_read(const json_object *binding, HistogramBucket **ret) {
        return lengths_read_array(json_object_object_get(binding, "Histogram"), ret);
}

uint64_t lengths_count(const HistogramBucket *buckets, size_t n) {
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += buckets[i].count;
        return sum;
}

uint64_t lengths_quantile(const json_object *binding, unsigned per_mille) {
        _cleanup_free_ HistogramBucket *buckets = NULL;
        size_t n = lengths_read(binding, &buckets);

        return n > 0 ? histogram_quantile(buckets, n, per_mille, json_number(binding, "MaxNSec"))
                     : UINT64_MAX;
}

uint64_t lengths_budget(const json_object *binding) {
        return json_number(json_object_object_get(binding, "Budgets"), "total");
}
