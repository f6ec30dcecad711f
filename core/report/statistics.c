/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sums of what was counted: of a binding before and after its probes were set anew, and of all
 * bindings. What one part does not know, the sum does not know.
 */

#include "report/statistics.h"

#include <stddef.h>

uint64_t statistic_add(uint64_t a, uint64_t b) {
        return a == STATISTIC_UNKNOWN || b == STATISTIC_UNKNOWN ? STATISTIC_UNKNOWN : a + b;
}

void statistics_add(Statistics *statistics, const Statistics *past) {
        const uint64_t *from = (const uint64_t *) &past->counters;
        uint64_t *to = (uint64_t *) &statistics->counters;

        for (size_t i = 0; i < sizeof(statistics->counters) / sizeof(*to); i++)
                to[i] = statistic_add(to[i], from[i]);
        if (past->max_ns > statistics->max_ns)
                statistics->max_ns = past->max_ns;
        statistics->cost_ns = statistic_add(statistics->cost_ns, past->cost_ns);
        if (past->late_max_ns > statistics->late_max_ns)
                statistics->late_max_ns = past->late_max_ns;
}
