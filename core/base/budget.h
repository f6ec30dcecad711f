/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdint.h>

#include "base/words.h"

/* "total", "running" ... */
const char *budget_to_string(enum tlob_budget budget);

/* The budget of that name; of another one the total. */
enum tlob_budget budget_from_string(const char *s);

/*
 * How far a window that took so long is over that budget, or under it if it is a minimum; 0: it is
 * not, or the time is UINT64_MAX: not known.
 */
uint64_t budget_get_overrun(enum tlob_budget budget, uint64_t budget_ns, uint64_t elapsed_ns,
                            const uint64_t spent_ns[static TLOB_N_STATES]);

#endif
