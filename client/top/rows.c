/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From what was counted at two moments to rows: one for each binding, or one for each unit with all
 * its bindings together, sorted. A rate is over the time between the two. All of it is arithmetic:
 * how a number looks is up to view.c.
 *
 * Bindings at the same place share their probes, and each shows all their cost. A unit shows the
 * sum.
 */

#include "top/rows.h"

static const char *const sort_keys[N_SORT_KEYS] = {
        [SORT_VIOLATIONS] = "violations",
        [SORT_WINDOWS] = "windows",
        [SORT_P50] = "p50",
        [SORT_P99] = "p99",
        [SORT_MAX] = "max",
        [SORT_COST] = "cost",
        [SORT_STATE] = "state",
        [SORT_NAME] = "name",
};

const char *sort_key_to_string(SortKey key) {
        return sort_keys[key];
}

SortKey sort_key_from_string(const char *s) {
        SortKey key;

        for (key = 0; key < N_SORT_KEYS; key++)
                if (streq(sort_keys[key], s))
                        break;
        return key;
}

void rows_done(Rows *rows) {
        free(rows->rows);
        *rows = (Rows) {};
}

/* What needs a look comes first: of the states of several bindings, the first is shown. */
static unsigned rank_state(const char *state) {
        static const char *const states[] = { "failed", "active", "waiting", "disabled" };
        unsigned i;

        for (i = 0; i < ELEMENTSOF(states); i++)
                if (streq(states[i], state))
                        break;
        return i;
}

static double per_sec(uint64_t count, uint64_t interval_ns) {
        return (double) count * 1e9 / (double) interval_ns;
}

static void fill_shares(Row *row, const Change *change) {
        double sum = 0;

        for (size_t i = 0; i < TLOB_N_STATES; i++)
                sum += change->spent_ns[i] == UINT64_MAX ? 0 : (double) change->spent_ns[i];
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                row->share[i] = sum > 0 && change->spent_ns[i] != UINT64_MAX
                                        ? (double) change->spent_ns[i] / sum
                                        : -1;
}

static void fill_row(Row *row, const Change *change, uint64_t interval_ns) {
        bool is_known = change->is_known && interval_ns > 0;

        row->windows_per_sec = is_known && change->windows != UINT64_MAX
                                       ? per_sec(change->windows, interval_ns)
                                       : -1;
        row->violations_per_sec = is_known && change->violations != UINT64_MAX
                                          ? per_sec(change->violations, interval_ns)
                                          : -1;
        row->cpu = is_known && change->probes_ns != UINT64_MAX
                           ? (double) change->probes_ns / (double) interval_ns
                           : -1;
        fill_shares(row, change);
        row->p50_ns = change_quantile(change, 500);
        row->p99_ns = change_quantile(change, 990);
        row->max_ns = change->max_ns > 0 ? change->max_ns : UINT64_MAX;
}

static void count_binding(Rows *rows, const Tally *tally) {
        rows->n_bindings++;
        rows->n_active += (size_t) streq(tally->state, "active");
        rows->n_failed += (size_t) streq(tally->state, "failed");
}

static int compare_units(const void *a, const void *b) {
        const Tally *const *x = a, *const *y = b;
        int c = strcmp((*x)->unit, (*y)->unit);

        /* Theirs is the order of the names. */
        return c != 0 ? c : (*x > *y) - (*x < *y);
}

/* Those of a row stand next to each other. The caller frees the list; NULL for want of memory. */
static const Tally **list_tallies(const Tallies *now, bool by_unit) {
        const Tally **list = calloc(now->n + 1, sizeof(*list));

        for (size_t i = 0; list && i < now->n; i++)
                list[i] = now->tallies + i;
        if (list && by_unit)
                qsort(list, now->n, sizeof(*list), compare_units);
        return list;
}

/* A row of the first n of these. */
static void make_row(const Tally *const *list, size_t n, const Tallies *before, bool by_unit,
                     Rows *rows) {
        Row *row = rows->rows + rows->n++;
        Change change = {};

        *row = (Row) {
                .name = by_unit ? list[0]->unit : list[0]->name,
                .state = list[0]->state,
                .budget_ns = list[0]->budget_ns,
                .n_bindings = n,
        };
        for (size_t i = 0; i < n; i++) {
                change_add(&change, tallies_find(before, list[i]->name), list[i]);
                if (rank_state(list[i]->state) < rank_state(row->state))
                        row->state = list[i]->state;
                count_binding(rows, list[i]);
        }
        fill_row(row, &change, rows->interval_ns);
        if (row->windows_per_sec > 0)
                rows->windows_per_sec += row->windows_per_sec;
        if (row->violations_per_sec > 0)
                rows->violations_per_sec += row->violations_per_sec;
}

static int compare_numbers(double x, double y) {
        return (x < y) - (x > y);
}

/* A length that is not known comes after all others. */
static int compare_lengths(uint64_t x, uint64_t y) {
        return x == y ? 0 : x == UINT64_MAX ? 1 : y == UINT64_MAX ? -1 : x < y ? 1 : -1;
}

static int compare_by(const Row *x, const Row *y, SortKey key) {
        int c;

        switch (key) {
        case SORT_WINDOWS:
                return compare_numbers(x->windows_per_sec, y->windows_per_sec);
        case SORT_P50:
                return compare_lengths(x->p50_ns, y->p50_ns);
        case SORT_P99:
                return compare_lengths(x->p99_ns, y->p99_ns);
        case SORT_MAX:
                return compare_lengths(x->max_ns, y->max_ns);
        case SORT_COST:
                return compare_numbers(x->cpu, y->cpu);
        case SORT_STATE:
                return (int) rank_state(x->state) - (int) rank_state(y->state);
        case SORT_NAME:
                return strcmp(x->name, y->name);
        default:
                c = compare_numbers(x->violations_per_sec, y->violations_per_sec);
                return c != 0 ? c : compare_numbers(x->windows_per_sec, y->windows_per_sec);
        }
}

static int compare_rows(const void *a, const void *b, void *userdata) {
        const RowsOrder *order = userdata;
        const Row *x = a, *y = b;
        int c = compare_by(x, y, order->key);

        if (c == 0)
                return strcmp(x->name, y->name);
        return order->reverse ? -c : c;
}

int rows_make(const Tallies *before, const Tallies *now, const RowsOrder *order, Rows *ret) {
        _cleanup_free_ const Tally **list = list_tallies(now, order->by_unit);
        Rows made = { .rows = calloc(now->n + 1, sizeof(Row)) };
        RowsOrder how = *order;

        if (!list || !made.rows) {
                rows_done(&made);
                return -ENOMEM;
        }
        if (before->time_ns > 0 && now->time_ns > before->time_ns)
                made.interval_ns = now->time_ns - before->time_ns;
        for (size_t i = 0, n; i < now->n; i += n) {
                for (n = 1; order->by_unit && i + n < now->n; n++)
                        if (!streq(list[i]->unit, list[i + n]->unit))
                                break;
                make_row(list + i, n, before, order->by_unit, &made);
        }
        qsort_r(made.rows, made.n, sizeof(Row), compare_rows, &how);
        *ret = made;
        return 0;
}
