/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * bpf/site-list.h: bindings that come and go at a site, as the programs find them. The scopes,
 * which are in a map of the kernel, are an array here.
 */

#include "bpf/site-list.h"

#include "base/cleanup.h"
#include "test.h"

#define N_UNITS 5 /* TLOB_UNIT_NONE is the first */

typedef struct Lists {
        struct tlob_site site;
        struct tlob_scope scopes[N_UNITS];
} Lists;

static bool join(Lists *lists, uint32_t binding, uint32_t unit) {
        if (site_list_add(&lists->site, binding))
                return true;
        if (!scope_add(&lists->scopes[unit], binding))
                return false;
        site_list_count_scoped(&lists->site, unit);
        return true;
}

static void leave(Lists *lists, uint32_t binding, uint32_t unit) {
        if (site_list_remove(&lists->site, binding))
                return;
        site_list_uncount_scoped(&lists->site, unit);
        scope_remove(&lists->scopes[unit], binding);
}

static unsigned find_in_scope(const struct tlob_scope *scope, uint32_t binding) {
        unsigned found = 0;

        for (uint32_t i = 0; i < scope->n; i++)
                found += scope->binding[i] == binding;
        return found;
}

/* How often a task of that unit comes across the binding: the same walk as the programs'. */
static unsigned find(const Lists *lists, uint32_t binding, uint32_t unit) {
        unsigned found = 0;

        for (uint32_t i = 0; i < TLOB_SITE_BINDINGS_MAX && i < lists->site.n; i++)
                found += lists->site.binding[i] == binding;
        if (lists->site.n_scoped == 0)
                return found;
        if (lists->site.n_unconfined > 0)
                found += find_in_scope(&lists->scopes[TLOB_UNIT_NONE], binding);
        if (unit != TLOB_UNIT_NONE)
                found += find_in_scope(&lists->scopes[unit], binding);
        return found;
}

static void assert_counts(const Lists *lists, uint32_t n_bindings) {
        const struct tlob_site *site = &lists->site;
        uint32_t listed = 0, scoped = 0;

        for (uint32_t i = 0; i < site->n; i++)
                listed += site->binding[i] != TLOB_NO_BINDING;
        for (size_t i = 0; i < N_UNITS; i++)
                scoped += lists->scopes[i].n;
        assert_int_equal(site->n_bindings, n_bindings);
        assert_int_equal(listed + scoped, n_bindings);
        assert_int_equal(site->n_scoped, scoped);
        assert_int_equal(site->n_unconfined, lists->scopes[TLOB_UNIT_NONE].n);
        assert_in_range(site->n, listed, TLOB_SITE_BINDINGS_MAX);
        /* No task walks along places that are all free. */
        if (site->n > 0)
                assert_int_not_equal(site->binding[site->n - 1], TLOB_NO_BINDING);
}

/* 100, 101 and so on, up to the room at the site itself. */
static void fill(Lists *lists) {
        for (uint32_t i = 0; i < TLOB_SITE_BINDINGS_MAX; i++)
                assert_true(site_list_add(&lists->site, 100 + i));
        assert_int_equal(lists->site.n, TLOB_SITE_BINDINGS_MAX);
}

static void test_full(void **state) {
        Lists lists = {}, before;

        fill(&lists);
        before = lists;
        assert_false(site_list_add(&lists.site, 999));
        assert_memory_equal(&lists, &before, sizeof(lists));
        assert_counts(&lists, TLOB_SITE_BINDINGS_MAX);
}

static void test_holes_are_filled(void **state) {
        Lists lists = {};

        fill(&lists);
        assert_true(site_list_remove(&lists.site, 101));
        assert_true(site_list_remove(&lists.site, 100));
        /* Nobody moves: a program that walks along misses none and meets none twice. */
        assert_int_equal(lists.site.n, TLOB_SITE_BINDINGS_MAX);
        assert_int_equal(lists.site.binding[0], TLOB_NO_BINDING);
        assert_int_equal(lists.site.binding[1], TLOB_NO_BINDING);
        assert_int_equal(lists.site.binding[2], 102);
        assert_counts(&lists, TLOB_SITE_BINDINGS_MAX - 2);

        assert_true(site_list_add(&lists.site, 200));
        assert_true(site_list_add(&lists.site, 201));
        assert_false(site_list_add(&lists.site, 202));
        assert_int_equal(lists.site.binding[0], 200);
        assert_int_equal(lists.site.binding[1], 201);
        assert_counts(&lists, TLOB_SITE_BINDINGS_MAX);
}

static void test_last_leaves(void **state) {
        Lists lists = {};

        fill(&lists);
        assert_true(site_list_remove(&lists.site, 101));
        assert_true(site_list_remove(&lists.site, 102));
        assert_int_equal(lists.site.n, 4);
        assert_true(site_list_remove(&lists.site, 103));
        assert_int_equal(lists.site.n, 1);
        assert_counts(&lists, 1);
        assert_true(site_list_remove(&lists.site, 100));
        assert_int_equal(lists.site.n, 0);
        assert_counts(&lists, 0);
}

static void test_not_there(void **state) {
        Lists lists = {}, before;

        assert_false(site_list_remove(&lists.site, 0));
        fill(&lists);
        before = lists;
        assert_false(site_list_remove(&lists.site, 999));
        assert_memory_equal(&lists, &before, sizeof(lists));

        scope_add(&lists.scopes[1], 7);
        scope_remove(&lists.scopes[1], 8);
        assert_int_equal(lists.scopes[1].n, 1);
        assert_int_equal(find_in_scope(&lists.scopes[1], 7), 1);
}

/* Index 0 is a binding like any other, and memory is zeroed. */
static void test_first_binding(void **state) {
        Lists lists = {};

        assert_int_equal(find(&lists, 0, TLOB_UNIT_NONE), 0);
        assert_true(join(&lists, 0, TLOB_UNIT_NONE));
        assert_true(join(&lists, 1, TLOB_UNIT_NONE));
        assert_int_equal(find(&lists, 0, TLOB_UNIT_NONE), 1);
        leave(&lists, 0, TLOB_UNIT_NONE);
        assert_int_equal(find(&lists, 0, TLOB_UNIT_NONE), 0);
        assert_int_equal(find(&lists, 1, TLOB_UNIT_NONE), 1);
        assert_counts(&lists, 1);
}

/* Room runs out in one unit only. */
static void test_scope_is_full(void **state) {
        struct tlob_scope before;
        Lists lists = {};

        fill(&lists);
        for (uint32_t i = 0; i < TLOB_SCOPE_BINDINGS_MAX; i++)
                assert_true(join(&lists, 200 + i, 1));
        before = lists.scopes[1];
        assert_false(join(&lists, 300, 1));
        assert_memory_equal(&lists.scopes[1], &before, sizeof(before));
        assert_counts(&lists, TLOB_SITE_BINDINGS_MAX + TLOB_SCOPE_BINDINGS_MAX);
        assert_true(join(&lists, 300, 2));
        assert_true(join(&lists, 301, TLOB_UNIT_NONE));

        leave(&lists, 200, 1);
        assert_true(join(&lists, 302, 1));
        for (uint32_t i = 1; i < TLOB_SCOPE_BINDINGS_MAX; i++)
                assert_int_equal(find(&lists, 200 + i, 1), 1);
        assert_int_equal(find(&lists, 302, 1), 1);
        assert_int_equal(find(&lists, 302, 2), 0);
        assert_int_equal(find(&lists, 300, 2), 1);
        assert_int_equal(find(&lists, 301, 2), 1);
        assert_counts(&lists, TLOB_SITE_BINDINGS_MAX + TLOB_SCOPE_BINDINGS_MAX + 2);
}

/* Of the scopes, only those are looked into in which something is. */
static void test_scopes_are_counted(void **state) {
        Lists lists = {};

        fill(&lists);
        assert_int_equal(lists.site.n_scoped, 0);
        assert_true(join(&lists, 200, 3));
        assert_int_equal(lists.site.n_scoped, 1);
        assert_int_equal(lists.site.n_unconfined, 0);
        assert_true(join(&lists, 201, TLOB_UNIT_NONE));
        assert_int_equal(lists.site.n_scoped, 2);
        assert_int_equal(lists.site.n_unconfined, 1);
        leave(&lists, 201, TLOB_UNIT_NONE);
        leave(&lists, 200, 3);
        assert_counts(&lists, TLOB_SITE_BINDINGS_MAX);
        assert_int_equal(lists.site.n_scoped, 0);
}

/* Any order: a binding that is there is met once by its unit, one that has left by nobody. */
static void test_any_order(void **state) {
        enum {
                N_BINDINGS = 40
        };
        bool is_there[N_BINDINGS] = {};
        uint32_t random = 1, n = 0, most = 0;
        Lists lists = {};

        for (unsigned step = 0; step < 20000; step++) {
                uint32_t binding, unit;

                random = random * 1664525 + 1013904223;
                binding = (random >> 16) % N_BINDINGS;
                unit = binding % N_UNITS;
                if (is_there[binding])
                        leave(&lists, binding, unit);
                else
                        assert_true(join(&lists, binding, unit));
                is_there[binding] = !is_there[binding];
                n += is_there[binding] ? 1 : (uint32_t) -1;
                most = n > most ? n : most;

                assert_counts(&lists, n);
                for (uint32_t i = 0; i < N_BINDINGS; i++)
                        assert_int_equal(find(&lists, i, i % N_UNITS), is_there[i]);
        }
        assert_in_range(most, 2 * TLOB_SITE_BINDINGS_MAX, N_BINDINGS);
}

static void test_apart(void **state) {
        static const SiteUser users[] = {
                { .binding = 1, .unit = 1 },
                { .binding = 2, .unit = 2 },
                { .binding = 3, .unit = 3 },
        };
        static const SiteUser same_unit[] = {
                { .binding = 1, .unit = 1 },
                { .binding = 2, .unit = 2 },
                { .binding = 3, .unit = 1 },
        };
        static const SiteUser neighbours[] = {
                { .binding = 1, .unit = 2 },
                { .binding = 2, .unit = 1 },
                { .binding = 3, .unit = 1 },
        };
        static const SiteUser unconfined[] = {
                { .binding = 1, .unit = 1 },
                { .binding = 2, .unit = TLOB_UNIT_NONE },
        };
        static const SiteUser template[] = {
                { .binding = 1, .unit = 1 },
                { .binding = 2, .unit = 2, .many = true },
        };

        assert_true(site_users_are_apart(NULL, 0));
        assert_true(site_users_are_apart(users, ELEMENTSOF(users)));
        assert_false(site_users_are_apart(same_unit, ELEMENTSOF(same_unit)));
        assert_true(site_users_are_apart(same_unit, 2));
        assert_false(site_users_are_apart(neighbours, ELEMENTSOF(neighbours)));
        assert_false(site_users_are_apart(unconfined, ELEMENTSOF(unconfined)));
        assert_false(site_users_are_apart(template, ELEMENTSOF(template)));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_full),
                cmocka_unit_test(test_holes_are_filled),
                cmocka_unit_test(test_last_leaves),
                cmocka_unit_test(test_not_there),
                cmocka_unit_test(test_first_binding),
                cmocka_unit_test(test_scope_is_full),
                cmocka_unit_test(test_scopes_are_counted),
                cmocka_unit_test(test_any_order),
                cmocka_unit_test(test_apart),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
