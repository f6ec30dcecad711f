/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The functions of ways.S: each way out of them is found, no other, and those without are refused.
 */

#include "elf/function-exits.h"

#include "elf/function-code.h"
#include "test.h"

#define EXITS_MAX 8

static int setup(void **state) {
        ElfFile *elf = NULL;

        assert_ok(elf_file_open(WAYS_LIBRARY, &elf, NULL));
        *state = elf;
        return 0;
}

static int teardown(void **state) {
        elf_file_free(*state);
        return 0;
}

/* -1: there is no such symbol. */
static uint64_t find(ElfFile *elf, const char *symbol) {
        _cleanup_(elf_site_done) ElfSite site = {};
        char place[80];

        (void) snprintf(place, sizeof(place), "%s+0", symbol);
        return elf_file_resolve(elf, place, &site, NULL) < 0 ? UINT64_MAX : site.offset;
}

static bool has_exit(const FunctionExits *exits, uint64_t offset) {
        for (size_t i = 0; i < exits->n; i++)
                if (exits->offsets[i] == offset)
                        return true;
        return false;
}

/* As many as there are labels, and each at one of them. */
static void assert_exits(ElfFile *elf, const char *function, size_t n_returns,
                         const char *several) {
        _cleanup_(function_exits_done) FunctionExits exits = {};
        const char *reason = NULL;
        size_t n;

        if (function_find_exits(elf, find(elf, function), &exits, &reason) < 0)
                fail_msg("'%s' %s.", function, reason);
        for (n = 0; n < EXITS_MAX; n++) {
                uint64_t offset;
                char label[64];

                (void) snprintf(label, sizeof(label), "%s_%zu", function, n + 1);
                offset = find(elf, label);
                if (offset == UINT64_MAX)
                        break;
                if (!has_exit(&exits, offset))
                        fail_msg("%s is not found.", label);
        }
        assert_int_equal(exits.n, n);
        assert_int_equal(exits.n_returns, n_returns);
        assert_string_equal(exits.several ?: "", several);
        for (size_t i = 1; i < exits.n; i++)
                assert_true(exits.offsets[i - 1] < exits.offsets[i]);
}

static void assert_refused(ElfFile *elf, const char *function, const char *words) {
        FunctionExits exits = { .n = 4711 };
        const char *reason = NULL;

        assert_int_equal(function_find_exits(elf, find(elf, function), &exits, &reason),
                         -EOPNOTSUPP);
        if (!strstr(reason, words))
                fail_msg("'%s' %s; expected: '%s'", function, reason, words);
        assert_int_equal(exits.n, 4711);
}

static void test_returns(void **state) {
        assert_exits(*state, "one_return", 1, "");
        assert_exits(*state, "two_returns", 2, "returns at several places");
        assert_exits(*state, "recursive", 1, "calls itself");
        assert_exits(*state, "only_unwind", 1, "");
}

/* depth: of the stack at each way out; 0: they are the returns. */
static void assert_depth(ElfFile *elf, const char *function, uint32_t depth) {
        _cleanup_(function_exits_done) FunctionExits exits = {};
        const char *reason = NULL;

        assert_ok(function_find_exits(elf, find(elf, function), &exits, &reason));
        assert_int_equal(exits.depth, depth);
        assert_int_equal(exits.depth_of_frame_pointer, strstr(function, "any_size") != NULL);
}

static void assert_guarded(ElfFile *elf, const char *function, size_t n_returns, uint32_t depth) {
        assert_exits(elf, function, n_returns, n_returns > 1 ? "returns at several places" : "");
        assert_depth(elf, function, depth);
}

static void test_guard(void **state) {
        assert_guarded(*state, "one_return", 1, 0);
        assert_guarded(*state, "guarded", 1, 32);
        assert_guarded(*state, "guarded_twice", 2, 32);
        assert_guarded(*state, "guard_bypassed", 1, 0);
        assert_guarded(*state, "guard_before_one", 2, 0);
        assert_guarded(*state, "guard_in_two_frames", 2, 0);
        assert_guarded(*state, "guard_in_frame_of_any_size", 1, 8);
        assert_guarded(*state, "guard_before_first", 2, 0);
        assert_guarded(*state, "guard_before_call", 1, 0);
        assert_guarded(*state, "no_guard", 1, 0);
}

static void test_guard_and_parts(void **state) {
        assert_exits(*state, "guard_bypassed_from_cold", 1, "lies in several places");
        assert_depth(*state, "guard_bypassed_from_cold", 0);
}

static void test_tail_calls(void **state) {
        assert_exits(*state, "tail_call", 0, "can be left by a jump");
        assert_exits(*state, "pointer", 1, "can be left by a jump");
        assert_exits(*state, "hand_written", 1, "can be left by a jump");
        assert_exits(*state, "hand_to_stub", 1, "can be left by a jump");
        assert_refused(*state, "hand_to_stub_perhaps", "by a conditional jump to another function");
        assert_exits(*state, "to_itself", 1, "can be left by a jump");
        assert_refused(*state, "pointer_inside", "known only at run time and may be inside");
        assert_refused(*state, "pointer_by_table", "known only at run time and may be inside");
        assert_refused(*state, "pointer_unknown", "has no unwind information");
}

static void test_parts(void **state) {
        assert_exits(*state, "in_parts", 3, "returns at several places");
        assert_exits(*state, "calls_cold", 2, "returns at several places");
        assert_exits(*state, "conditional", 1, "can be left by a jump");
}

static void test_switches(void **state) {
        assert_exits(*state, "switch_by_distance", 2, "can be left by a jump");
        assert_exits(*state, "switch_without_track", 1, "");
        assert_exits(*state, "pointer_in_frame", 1, "");
}

static void test_not_to_its_end(void **state) {
        assert_refused(*state, "no_size", "neither a symbol nor unwind information");
        assert_refused(*state, "runs_on", "runs on into the code after it");
        assert_refused(*state, "with_data", "bytes that are not instructions");
        assert_refused(*state, "with_hidden_data", "into the middle of an instruction");
        assert_refused(*state, "with_kernel_code", "no program may use");
}

static void test_never(void **state) {
        assert_refused(*state, "never_returns", "never returns");
        assert_refused(*state, "calls_abort", "never returns");
        assert_refused(*state, "only_itself", "never returns");
}

static void assert_start(ElfFile *elf, const char *function, uint64_t expected) {
        _cleanup_(function_exits_done) FunctionExits exits = {};
        uint64_t entry = find(elf, function);
        const char *reason;

        assert_ok(function_find_exits(elf, entry, &exits, &reason));
        assert_int_equal(exits.start - entry, expected);
}

static void test_start(void **state) {
        assert_start(*state, "two_returns", 0);
        assert_start(*state, "one_return", 4);
        /* Past endbr64 it would be hit in each pass of the loop, or where the function ends. */
        assert_start(*state, "loop_past_endbr", 0);
        assert_start(*state, "only_endbr", 0);
        assert_refused(*state, "loop_at_start", "jumps back to its first instruction");
        assert_refused(*state, "nothing", "only of its return");
        assert_refused(*state, "only_jump", "only of a jump to another function");
}

static void test_boundary(void **state) {
        uint64_t entry = find(*state, "one_return"), begin;
        const char *reason;

        assert_int_equal(function_check_boundary(*state, entry, &begin, &reason), 1);
        assert_int_equal(function_check_boundary(*state, entry + 5, &begin, &reason), 1);
        assert_int_equal(function_check_boundary(*state, entry + 8, &begin, &reason), 0);
        assert_int_equal(begin, entry + 5);
        assert_int_equal(function_check_boundary(*state, find(*state, "no_size"), &begin, &reason),
                         -ESRCH);
        assert_int_equal(function_check_boundary(*state, 0, &begin, &reason), -ESRCH);
        assert_int_equal(
                function_check_boundary(*state, find(*state, "with_data") + 3, &begin, &reason),
                -EOPNOTSUPP);
}

/* No part of these may be taken for another one that is cut. */
static void test_cut(void **state) {
        static const uint8_t code[] = { 0x55, 0xe8, 0, 1, 0,    0,    0x0f, 0x85,
                                        2,    0,    0, 0, 0x5d, 0xc3, 0x5d, 0xc3 };
        /*
         * Where it is cut between instructions. The branch goes outside while its target is
         * missing.
         */
        static const size_t n_leaves[] = { [12] = 1, [13] = 1, [14] = 2, [15] = 1, [16] = 2 };
        const char *reason;

        for (size_t size = 0; size <= sizeof(code); size++) {
                FunctionCode read = {};
                int r;

                r = function_code_read(code, size, 0x1000, &read, &reason);
                if (r < 0) {
                        assert_int_equal(r, -EOPNOTSUPP);
                        assert_non_null(strstr(reason, "not instructions"));
                        continue;
                }
                assert_int_equal(read.n_leaves, n_leaves[size]);
                function_code_done(&read);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_returns),
                cmocka_unit_test(test_guard),
                cmocka_unit_test(test_guard_and_parts),
                cmocka_unit_test(test_tail_calls),
                cmocka_unit_test(test_parts),
                cmocka_unit_test(test_switches),
                cmocka_unit_test(test_not_to_its_end),
                cmocka_unit_test(test_never),
                cmocka_unit_test(test_start),
                cmocka_unit_test(test_boundary),
                cmocka_unit_test(test_cut),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
