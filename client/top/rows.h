/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TOP_ROWS_H
#define TOP_ROWS_H

#include "top/tally.h"

/* The rows of a screen: bindings or units, with what happened since the screen before. */

typedef enum SortKey {
        SORT_VIOLATIONS,
        SORT_WINDOWS,
        SORT_P50,
        SORT_P99,
        SORT_MAX,
        SORT_COST,
        SORT_STATE,
        SORT_NAME,
        N_SORT_KEYS,
} SortKey;

/* The word for --sort=. */
const char *sort_key_to_string(SortKey key);

/* N_SORT_KEYS: there is none of that name. */
SortKey sort_key_from_string(const char *s);

/* What is not known is negative, or UINT64_MAX. */
typedef struct Row {
        const char *name; /* of the binding or unit; "" stands for no unit */
        const char *state;
        uint64_t budget_ns; /* of a binding */
        size_t n_bindings;
        double windows_per_sec, violations_per_sec;
        double share[TLOB_N_STATES]; /* of the time of windows that ended, 0 to 1 */
        double cpu;                  /* CPUs that the probes took */
        uint64_t p50_ns, p99_ns, max_ns;
} Row;

typedef struct Rows {
        Row *rows;
        size_t n;
        size_t n_bindings, n_active, n_failed;
        double windows_per_sec, violations_per_sec;
        uint64_t interval_ns; /* 0: there is no screen before */
} Rows;

/* How to make them. The greatest come first, and names and states in their order. */
typedef struct RowsOrder {
        bool by_unit;
        SortKey key;
        bool reverse;
} RowsOrder;

/*
 * Before is empty for the first screen. The strings of the rows belong to now. Returns 0 or
 * -ENOMEM.
 */
int rows_make(const Tallies *before, const Tallies *now, const RowsOrder *order, Rows *ret);
void rows_done(Rows *rows);

#endif
