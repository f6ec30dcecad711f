/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* suggest/candidates.h: what is in files, of which all functions were seen. */

#include "suggest/candidates.h"

#include <stdio.h>

#include "test.h"

int __wrap_stacks_find(const Stacks *stacks, const char *path, uint64_t offset, uint32_t *ret);
uint64_t __wrap_stretches_get_spent_in(const Stretches *stretches, uint32_t function);

int __wrap_stacks_find(const Stacks *stacks, const char *path, uint64_t offset, uint32_t *ret) {
        *ret = 0;
        return 0;
}

uint64_t __wrap_stretches_get_spent_in(const Stretches *stretches, uint32_t function) {
        return 1;
}

/* What was seen: one function. */
static const SeenFunction *function;

const SeenFunction *__wrap_stacks_get(const Stacks *stacks, uint32_t number);
size_t __wrap_stretches_rank(const Stretches *stretches, Stretch *ret, size_t n);

const SeenFunction *__wrap_stacks_get(const Stacks *stacks, uint32_t number) {
        return function;
}

size_t __wrap_stretches_rank(const Stretches *stretches, Stretch *ret, size_t n) {
        *ret = (Stretch) { .spent_ns = 1 };
        return 1;
}

static void test_pair(void **state) {
        _cleanup_(candidates_done) Candidates candidates = {};

        assert_ok(candidates_add_usdt(&candidates, NULL, NULL, MARKED, "/usr/bin/marked"));
        assert_true(candidates.n > 0);
        assert_string_equal(candidates.items[0].executable, "/usr/bin/marked");
        assert_non_null(strstr(candidates.items[0].start, "usdt:tlobtest:"));
}

/* A program can have any number of libraries. */
static void test_many_files(void **state) {
        _cleanup_(candidates_done) Candidates candidates = {};

        for (unsigned i = 0; i < 2 * CANDIDATES_MAX; i++) {
                char inside[32];

                (void) snprintf(inside, sizeof(inside), "/lib/%u.so", i);
                assert_ok(candidates_add_usdt(&candidates, NULL, NULL, MARKED, inside));
                assert_in_range(candidates.n, 1, CANDIDATES_MAX);
        }
        assert_int_equal(candidates.n, CANDIDATES_MAX);
}

/* The daemon would refuse it, and with it all that is tried after it. */
static void test_no_text(void **state) {
        _cleanup_(candidates_done) Candidates candidates = {};
        const char *path = "/usr/lib/a\xff.so";
        SeenFunction seen[] = {
                { .path = path, .name = "good", .is_known = true },
                { .path = "/usr/lib/a.so",
                  .name = "b\xff"
                          "d",
                  .is_known = true },
                { .path = "/usr/lib/a.so", .name = "good", .is_known = true },
        };

        assert_ok(candidates_add_usdt(&candidates, NULL, NULL, MARKED, path));
        assert_int_equal(candidates.n, 0);
        for (size_t i = 0; i < ELEMENTSOF(seen); i++) {
                function = &seen[i];
                assert_ok(candidates_add_functions(&candidates, NULL, NULL));
        }
        assert_int_equal(candidates.n, 1);
        assert_string_equal(candidates.items[0].executable, "/usr/lib/a.so");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pair),
                cmocka_unit_test(test_many_files),
                cmocka_unit_test(test_no_text),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
