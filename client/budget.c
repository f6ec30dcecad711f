/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "budget.h"

#include "binding/binding.h"

uint64_t budget_propose(uint64_t p999_ns) {
        uint64_t ns, unit = 1;

        if (p999_ns > BUDGET_MAX_NS)
                return UINT64_MAX;
        ns = p999_ns + p999_ns / 2;
        while (ns / unit >= 100)
                unit *= 10;
        ns = (ns + unit - 1) / unit * unit;
        if (ns > BUDGET_MAX_NS)
                return UINT64_MAX;
        return ns < BUDGET_MIN_NS ? BUDGET_MIN_NS : ns;
}
