/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/budget.h"

#include "base/cleanup.h"

const char *budget_to_string(enum tlob_budget budget) {
        static const char *const names[TLOB_N_BUDGETS] = {
                [TLOB_BUDGET_TOTAL] = "total",     [TLOB_BUDGET_RUNNING] = "running",
                [TLOB_BUDGET_WAITING] = "waiting", [TLOB_BUDGET_SLEEPING] = "sleeping",
                [TLOB_BUDGET_MINIMUM] = "minimum",
        };

        return names[budget];
}

enum tlob_budget budget_from_string(const char *s) {
        for (unsigned i = 0; i < TLOB_N_BUDGETS; i++)
                if (streq(s, budget_to_string(i)))
                        return i;
        return TLOB_BUDGET_TOTAL;
}

uint64_t budget_get_overrun(enum tlob_budget budget, uint64_t budget_ns, uint64_t elapsed_ns,
                            const uint64_t spent_ns[static TLOB_N_STATES]) {
        uint64_t took_ns = budget == TLOB_BUDGET_TOTAL || budget == TLOB_BUDGET_MINIMUM
                                   ? elapsed_ns
                                   : spent_ns[budget - TLOB_BUDGET_RUNNING];

        if (took_ns == UINT64_MAX)
                return 0;
        if (budget == TLOB_BUDGET_MINIMUM)
                return took_ns < budget_ns ? budget_ns - took_ns : 0;
        return took_ns > budget_ns ? took_ns - budget_ns : 0;
}
