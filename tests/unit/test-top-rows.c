/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * top/tally.h, top/rows.h: what happened between two moments: rates, percentiles, shares; counters
 * that were reset, bindings that are new; units; the order. top/windows.h: what is open.
 */

#include "top/rows.h"

#include "top/windows.h"

#include "test.h"

#define SEC UINT64_C(1000000000)
#define MS  UINT64_C(1000000)

static HistogramBucket before_lengths[] = { { 1 * MS, 90 } };
static HistogramBucket now_lengths[] = { { 1 * MS, 130 }, { 8 * MS, 59 }, { UINT64_MAX, 1 } };

static Tally request_before = {
        .name = (char *) "a.service/request",
        .unit = (char *) "a.service",
        .state = (char *) "active",
        .budget_ns = 5 * MS,
        .windows = 100,
        .violations = 3,
        .open = 0,
        .spent_ns = { 10 * MS, 20 * MS, 30 * MS },
        .max_ns = 2 * MS,
        .probes_ns = 1 * MS,
        .lengths = before_lengths,
        .n_lengths = 1,
};

static Tally request_now(void) {
        Tally tally = request_before;

        tally.windows = 200;
        tally.violations = 53;
        tally.spent_ns[TLOB_RUNNING] += 10 * MS;
        tally.spent_ns[TLOB_WAITING] += 0;
        tally.spent_ns[TLOB_SLEEPING] += 30 * MS;
        tally.max_ns = 9 * MS;
        tally.probes_ns += 20 * MS;
        tally.lengths = now_lengths;
        tally.n_lengths = ELEMENTSOF(now_lengths);
        return tally;
}

static void make(Tally *before, size_t n_before, Tally *now, size_t n_now, RowsOrder order,
                 Rows *ret) {
        Tallies a = { .time_ns = n_before > 0 ? 10 * SEC : 0, .tallies = before, .n = n_before };
        Tallies b = { .time_ns = 12 * SEC, .tallies = now, .n = n_now };

        assert_ok(rows_make(&a, &b, &order, ret));
}

static void assert_near(double x, double y) {
        assert_true(x > y - 1e-6 && x < y + 1e-6);
}

static void test_change(void **state) {
        Tally now = request_now();
        Rows rows;

        make(&request_before, 1, &now, 1, (RowsOrder) {}, &rows);
        assert_int_equal(rows.n, 1);
        assert_int_equal(rows.interval_ns, 2 * SEC);
        assert_near(rows.rows[0].windows_per_sec, 50);
        assert_near(rows.rows[0].violations_per_sec, 25);
        assert_near(rows.windows_per_sec, 50);
        assert_near(rows.rows[0].cpu, 0.01);
        assert_near(rows.rows[0].share[TLOB_RUNNING], 0.25);
        assert_near(rows.rows[0].share[TLOB_WAITING], 0);
        assert_near(rows.rows[0].share[TLOB_SLEEPING], 0.75);
        /* Of the 40 + 59 + 1 windows since; 6.25 % is what a bucket may be off. */
        assert_in_range(rows.rows[0].p50_ns, 8 * MS, 85 * MS / 10);
        assert_in_range(rows.rows[0].p99_ns, 8 * MS, 85 * MS / 10);
        assert_int_equal(rows.rows[0].max_ns, 9 * MS);
        assert_int_equal(rows.n_active, 1);
        rows_done(&rows);
}

/* What the probes took is counted anew by each tlobd, unlike all else. */
static void test_another_daemon(void **state) {
        Tally now = request_now();
        Rows rows;

        now.probes_ns = request_before.probes_ns / 2;
        make(&request_before, 1, &now, 1, (RowsOrder) {}, &rows);
        assert_near(rows.rows[0].windows_per_sec, 50);
        assert_true(rows.rows[0].cpu < 0);
        rows_done(&rows);
}

/* The longest of all was before: of those since, the bucket is known. */
static void test_old_maximum(void **state) {
        HistogramBucket lengths[] = { { 1 * MS, 90 }, { 2 * MS, 1 } };
        Tally before = request_before, now = request_before;
        Rows rows;

        before.max_ns = now.max_ns = 500 * MS;
        now.windows++;
        now.lengths = lengths;
        now.n_lengths = 2;
        make(&before, 1, &now, 1, (RowsOrder) {}, &rows);
        assert_in_range(rows.rows[0].max_ns, 2 * MS, 2125 * MS / 1000);
        assert_int_equal(rows.rows[0].p50_ns, rows.rows[0].max_ns);
        rows_done(&rows);
}

static void assert_unknown(const Row *row) {
        assert_true(row->windows_per_sec < 0 && row->violations_per_sec < 0 && row->cpu < 0);
        assert_true(row->share[TLOB_RUNNING] < 0);
        assert_int_equal(row->p50_ns, UINT64_MAX);
        assert_int_equal(row->max_ns, UINT64_MAX);
}

static void test_unknown(void **state) {
        Tally now = request_now(), reset = request_before, other = request_before;
        Rows rows;

        /* The first screen. */
        make(NULL, 0, &now, 1, (RowsOrder) {}, &rows);
        assert_int_equal(rows.interval_ns, 0);
        assert_unknown(rows.rows);
        rows_done(&rows);

        /* Somebody has set it to zero. */
        reset.windows = 0;
        make(&now, 1, &reset, 1, (RowsOrder) {}, &rows);
        assert_unknown(rows.rows);
        rows_done(&rows);

        /* The number of windows is past that before again. */
        reset.windows = 1000;
        make(&now, 1, &reset, 1, (RowsOrder) {}, &rows);
        assert_unknown(rows.rows);
        rows_done(&rows);

        /* It is new. */
        other.name = (char *) "other";
        make(&other, 1, &now, 1, (RowsOrder) {}, &rows);
        assert_unknown(rows.rows);
        rows_done(&rows);

        /* A back end that knows neither times nor lengths. */
        now.spent_ns[0] = now.spent_ns[1] = now.spent_ns[2] = now.probes_ns = UINT64_MAX;
        now.lengths = before_lengths;
        now.n_lengths = ELEMENTSOF(before_lengths);
        make(&request_before, 1, &now, 1, (RowsOrder) {}, &rows);
        assert_near(rows.rows[0].windows_per_sec, 50);
        assert_true(rows.rows[0].cpu < 0 && rows.rows[0].share[TLOB_SLEEPING] < 0);
        assert_int_equal(rows.rows[0].p99_ns, UINT64_MAX);
        rows_done(&rows);

        /* It takes over from one that knows more, and not how many windows there were. */
        now.windows = UINT64_MAX;
        make(&request_before, 1, &now, 1, (RowsOrder) {}, &rows);
        assert_true(rows.rows[0].windows_per_sec < 0);
        assert_true(rows.windows_per_sec < 1);
        rows_done(&rows);
}

static void test_idle(void **state) {
        Rows rows;

        make(&request_before, 1, &request_before, 1, (RowsOrder) {}, &rows);
        assert_near(rows.rows[0].windows_per_sec, 0);
        assert_near(rows.rows[0].cpu, 0);
        assert_int_equal(rows.rows[0].p50_ns, UINT64_MAX);
        assert_true(rows.rows[0].share[TLOB_RUNNING] < 0);
        rows_done(&rows);
}

/* In the order of their names, as they come. */
static void fill_three(Tally before[static 3], Tally now[static 3]) {
        before[0] = request_before;
        now[0] = request_now();
        before[1] = request_before;
        before[1].name = (char *) "m";
        before[1].unit = (char *) "";
        before[1].state = (char *) "waiting";
        now[1] = before[1];
        before[2] = request_before;
        before[2].name = (char *) "z";
        before[2].state = (char *) "failed";
        now[2] = before[2];
        now[2].windows += 1000;
}

static void test_units(void **state) {
        Tally before[3], now[3];
        Rows rows;

        fill_three(before, now);
        make(before, 3, now, 3, (RowsOrder) { .by_unit = true, .key = SORT_NAME }, &rows);
        assert_int_equal(rows.n, 2);
        assert_string_equal(rows.rows[0].name, "");
        assert_string_equal(rows.rows[0].state, "waiting");
        assert_string_equal(rows.rows[1].name, "a.service");
        assert_string_equal(rows.rows[1].state, "failed");
        assert_int_equal(rows.rows[1].n_bindings, 2);
        assert_near(rows.rows[1].windows_per_sec, 550);
        assert_in_range(rows.rows[1].p50_ns, 8 * MS, 85 * MS / 10);
        assert_int_equal(rows.n_bindings, 3);
        assert_int_equal(rows.n_failed, 1);
        rows_done(&rows);
}

static void test_order(void **state) {
        static const struct {
                RowsOrder order;
                const char *first, *last;
        } cases[] = {
                { { .key = SORT_VIOLATIONS }, "a.service/request", "m" },
                { { .key = SORT_WINDOWS }, "z", "m" },
                { { .key = SORT_WINDOWS, .reverse = true }, "m", "z" },
                { { .key = SORT_P50 }, "a.service/request", "z" },
                { { .key = SORT_P99 }, "a.service/request", "z" },
                { { .key = SORT_MAX }, "a.service/request", "z" },
                { { .key = SORT_COST }, "a.service/request", "z" },
                { { .key = SORT_STATE }, "z", "m" },
                { { .key = SORT_NAME }, "a.service/request", "z" },
                { { .key = SORT_NAME, .reverse = true }, "z", "a.service/request" },
        };
        Tally before[3], now[3];

        fill_three(before, now);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Rows rows;

                make(before, 3, now, 3, cases[i].order, &rows);
                assert_string_equal(rows.rows[0].name, cases[i].first);
                assert_string_equal(rows.rows[2].name, cases[i].last);
                rows_done(&rows);
        }
}

static void test_sort_keys(void **state) {
        for (SortKey key = 0; key < N_SORT_KEYS; key++)
                assert_int_equal(sort_key_from_string(sort_key_to_string(key)), key);
        assert_int_equal(sort_key_from_string("size"), N_SORT_KEYS);
        assert_int_equal(sort_key_from_string(""), N_SORT_KEYS);
}

static void add_open(OpenWindows *windows, uint64_t id, uint64_t begin_ns) {
        OpenWindow window = {
                .id = id,
                .binding = (char *) "a.service/request",
                .unit = (char *) "",
                .task = (char *) "t",
                .where = (char *) "",
                .begin_ns = begin_ns,
        };

        assert_ok(open_windows_add(windows, &window));
}

static void test_open(void **state) {
        OpenWindows windows = {};
        Tally tally = request_now();
        Tallies now = { .tallies = &tally, .n = 1 };

        add_open(&windows, 1, 30);
        add_open(&windows, 2, 10);
        add_open(&windows, 3, 20);
        add_open(&windows, 3, 20);
        assert_int_equal(windows.n, 3);
        assert_int_equal(windows.windows[0].id, 2);
        assert_int_equal(windows.windows[2].id, 1);
        open_windows_remove(&windows, 2);
        open_windows_remove(&windows, 77);
        assert_int_equal(windows.n, 2);
        assert_int_equal(windows.windows[0].id, 3);

        tally.open = 2;
        open_windows_check(&windows, &now);
        assert_int_equal(windows.n, 2);
        tally.open = 0;
        open_windows_check(&windows, &now);
        assert_int_equal(windows.n, 0);

        /* A back end that tells no ends does not count them, either. */
        add_open(&windows, 4, 10);
        tally.open = UINT64_MAX;
        open_windows_check(&windows, &now);
        assert_int_equal(windows.n, 0);
        open_windows_done(&windows);
}

/* Of more than there is room for, the longest stay. */
static void test_open_many(void **state) {
        OpenWindows windows = {};

        for (uint64_t i = 0; i <= OPEN_WINDOWS_MAX; i++)
                add_open(&windows, i, 10000 - i);
        add_open(&windows, 99999, 99999);
        assert_int_equal(windows.n, OPEN_WINDOWS_MAX);
        assert_int_equal(windows.windows[0].id, OPEN_WINDOWS_MAX);
        assert_int_equal(windows.windows[windows.n - 1].id, 1);
        open_windows_done(&windows);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_change),  cmocka_unit_test(test_another_daemon),
                cmocka_unit_test(test_unknown), cmocka_unit_test(test_old_maximum),
                cmocka_unit_test(test_idle),    cmocka_unit_test(test_units),
                cmocka_unit_test(test_order),   cmocka_unit_test(test_sort_keys),
                cmocka_unit_test(test_open),    cmocka_unit_test(test_open_many),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
