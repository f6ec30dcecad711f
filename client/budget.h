/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BUDGET_H
#define BUDGET_H

#include <stdint.h>

/*
 * A budget for what takes that long, all but one in a thousand times: half as much more, rounded up
 * to two digits. UINT64_MAX: that is longer than a budget can be.
 */
uint64_t budget_propose(uint64_t p999_ns);

/* Fewer windows do not tell what one in a thousand takes. */
#define BUDGET_WINDOWS_FEW 1000

#endif
