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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pair),
                cmocka_unit_test(test_many_files),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
