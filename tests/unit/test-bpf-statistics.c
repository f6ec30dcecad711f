/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * daemon/bpf/statistics.c: what the programs have counted becomes the counters that all others
 * know, and none is forgotten on the way.
 */

#include "bpf/backend.h"
#include "test.h"

#define N_BOOKS (sizeof(struct tlob_books) / sizeof(uint64_t))
#define N_REACH 4 /* counters of the daemon's own */

static size_t count_of(const Counters *counters, uint64_t value) {
        const uint64_t *words = (const uint64_t *) counters;
        size_t n = 0;

        for (size_t i = 0; i < sizeof(*counters) / sizeof(*words); i++)
                n += words[i] == value;
        return n;
}

static void test_nothing_is_forgotten(void **state) {
        struct tlob_books books = {};
        uint64_t *words = (uint64_t *) &books;
        Counters counters;

        for (size_t i = 0; i < N_BOOKS; i++)
                words[i] = i + 1;
        books_sum(&books, 1, &counters);

        for (size_t i = 0; i < N_BOOKS; i++) {
                bool is_padding = &words[i] >= (uint64_t *) &books.ended[TLOB_N_ENDS] &&
                                  &words[i] < (uint64_t *) &books.ended[TLOB_ENDS_SIZE];

                assert_int_equal(count_of(&counters, i + 1), is_padding ? 0 : 1);
        }
        /* Nor is there a counter that nobody fills in. */
        assert_int_equal(count_of(&counters, 0), N_REACH);
        books_set_reach(
                &counters,
                &(SiteReach) { .n_outside = 91, .n_admitted = 92, .n_missed = 93, .late_ns = 94 });
        assert_int_equal(count_of(&counters, 0), 0);
        assert_int_equal(counters.outside, 91);
        assert_int_equal(counters.processes, 92);
        assert_int_equal(counters.processes_missed, 93);
        assert_int_equal(counters.late_ns, 94);
}

static void test_each_in_its_place(void **state) {
        struct tlob_books books = { .starts = 9, .in_budget = 4, .violated = 2, .lost = 1 };
        Counters counters;

        books.ended[TLOB_END_EXEC] = 3;
        books.spent_ns[TLOB_SLEEPING] = 1000;
        books_sum(&books, 1, &counters);
        assert_int_equal(counters.starts, 9);
        assert_int_equal(counters.in_budget, 4);
        assert_int_equal(counters.violated, 2);
        assert_int_equal(counters.lost, 1);
        assert_int_equal(counters.ended[TLOB_END_EXEC], 3);
        assert_int_equal(counters.spent_ns[TLOB_SLEEPING], 1000);
        assert_int_equal(counters.elapsed_ns, 1000);
}

static void test_all_cpus(void **state) {
        struct tlob_books per_cpu[] = {
                { .starts = 1, .suppressed = 10 },
                { .starts = 2 },
                { .starts = 4, .suppressed = 20 },
        };
        Counters counters;

        books_sum(per_cpu, ELEMENTSOF(per_cpu), &counters);
        assert_int_equal(counters.starts, 7);
        assert_int_equal(counters.suppressed, 30);
}

static void test_open_by_the_counters(void **state) {
        Counters counters = { .starts = 20, .in_budget = 5, .violated = 4, .over_limit = 1 };

        counters.ended[TLOB_END_EXIT] = 2;
        counters.ended[TLOB_END_ABANDONED] = 3;
        assert_int_equal(books_get_open(&counters), 5);
        counters.starts = 15;
        assert_int_equal(books_get_open(&counters), 0);
        /* They are not all read at one moment. */
        counters.starts = 14;
        assert_int_equal(books_get_open(&counters), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing_is_forgotten),
                cmocka_unit_test(test_each_in_its_place),
                cmocka_unit_test(test_all_cpus),
                cmocka_unit_test(test_open_by_the_counters),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
