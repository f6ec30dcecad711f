/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a daemon leaves on disk for the next one: saved, replaced, damaged, forgotten. */

#include "kernel/state.h"

#include <sys/stat.h>

#include "temporary.h"
#include "test.h"

#define FILE_NAME "tlob/kernel-monitor"
#define TEMPORARY "tlob/.kernel-monitor"
#define LINE_ONE  "p /usr/bin/tt:0x16d5 0x16e8 threshold=20000001"
#define LINE_TWO  "p:tlobd_1 /usr/bin/tu:0x10 0x20 threshold=1000"

static int setup(void **state) {
        Temporary *tmp = calloc(1, sizeof(*tmp));

        assert_non_null(tmp);
        temporary_init(tmp);
        *state = tmp;
        return 0;
}

static int teardown(void **state) {
        temporary_done(*state);
        free(*state);
        return 0;
}

static bool exists(Temporary *tmp, const char *name) {
        struct stat st;

        return lstat(temporary_path(tmp, name), &st) == 0;
}

static int save(Temporary *tmp, bool enabled, bool mounted, const char *lines) {
        KernelState state = { .enabled = enabled, .mounted = mounted };
        int r;

        assert_ok(kernel_lines_parse(lines, &state.lines));
        r = kernel_state_save(temporary_path(tmp, "tlob"), &state);
        kernel_state_done(&state);
        return r;
}

static int load(Temporary *tmp, KernelState *ret) {
        return kernel_state_load(temporary_path(tmp, "tlob"), ret);
}

static bool is_left(Temporary *tmp) {
        return kernel_state_is_left(temporary_path(tmp, "tlob"));
}

/* At the first start there is not even a directory; after a clean end there is an empty one. */
static void test_nothing_is_left(void **state) {
        KernelState none;

        assert_false(is_left(*state));
        assert_int_equal(load(*state, &none), -ENOENT);
        assert_ok(kernel_state_forget(temporary_path(*state, "tlob")));

        assert_ok(mkdir(temporary_path(*state, "tlob"), 0755));
        assert_false(is_left(*state));
        assert_int_equal(load(*state, &none), -ENOENT);
        assert_ok(kernel_state_forget(temporary_path(*state, "tlob")));
}

static void test_each_flag(void **state) {
        for (unsigned i = 0; i < 4; i++) {
                _cleanup_(kernel_state_done) KernelState loaded = {};

                assert_ok(save(*state, i & 1, i & 2, ""));
                assert_true(is_left(*state));
                assert_ok(load(*state, &loaded));
                assert_int_equal(loaded.enabled, i & 1 ? 1 : 0);
                assert_int_equal(loaded.mounted, i & 2 ? 1 : 0);
                assert_int_equal(loaded.lines.n, 0);
        }
}

/* Also one that was not understood: it may be ours all the same. */
static void test_lines(void **state) {
        _cleanup_(kernel_state_done) KernelState loaded = {};

        assert_ok(save(*state, true, false, LINE_ONE "\n" LINE_TWO "\nsomething else\n"));
        assert_ok(load(*state, &loaded));
        assert_int_equal(loaded.lines.n, 3);
        assert_string_equal(loaded.lines.items[0].text, LINE_ONE);
        assert_string_equal(loaded.lines.items[0].path, "/usr/bin/tt");
        assert_int_equal(loaded.lines.items[0].threshold, 20000001);
        assert_string_equal(loaded.lines.items[1].text, LINE_TWO);
        assert_string_equal(loaded.lines.items[1].name, "tlobd_1");
        assert_string_equal(loaded.lines.items[2].text, "something else");
        assert_null(loaded.lines.items[2].path);
}

/* Nothing of the one before shines through, and nothing stays beside it. */
static void test_replaced(void **state) {
        _cleanup_(kernel_state_done) KernelState loaded = {};

        assert_ok(save(*state, true, true, LINE_ONE "\n" LINE_TWO "\n"));
        assert_ok(save(*state, false, false, LINE_TWO "\n"));
        assert_ok(load(*state, &loaded));
        assert_false(loaded.enabled || loaded.mounted);
        assert_int_equal(loaded.lines.n, 1);
        assert_string_equal(loaded.lines.items[0].text, LINE_TWO);
        assert_false(exists(*state, TEMPORARY));
}

static void test_forgotten(void **state) {
        KernelState none;

        assert_ok(save(*state, true, true, LINE_ONE "\n"));
        assert_ok(kernel_state_forget(temporary_path(*state, "tlob")));
        assert_false(is_left(*state));
        assert_int_equal(load(*state, &none), -ENOENT);
        assert_ok(save(*state, false, true, ""));
        assert_true(is_left(*state));
}

/* It is seen to be left, so that somebody cleans up, but nothing of it is believed. */
static void test_damaged(void **state) {
        static const char *const damaged[] = {
                "",
                "enabled",
                "enabled 1\n",
                "enabled yes\nmounted no\n",
                "mounted 1\nenabled 1\n",
                LINE_ONE "\n",
        };

        for (size_t i = 0; i < ELEMENTSOF(damaged); i++) {
                KernelState untouched = { .enabled = true };

                temporary_write(*state, FILE_NAME, damaged[i]);
                assert_true(is_left(*state));
                assert_int_equal(load(*state, &untouched), -EBADMSG);
                assert_true(untouched.enabled);
                assert_null(untouched.lines.items);
        }
        assert_ok(save(*state, true, false, ""));
        assert_ok(load(*state, &(KernelState) {}));
}

/* A full file system: better what was known before than half of what is. */
static void test_save_fails(void **state) {
        _cleanup_(kernel_state_done) KernelState loaded = {};

        assert_ok(save(*state, true, false, LINE_ONE "\n"));
        assert_ok(symlink("/dev/full", temporary_path(*state, TEMPORARY)));
        assert_int_equal(save(*state, false, true, LINE_TWO "\n"), -ENOSPC);
        assert_false(exists(*state, TEMPORARY));
        assert_ok(load(*state, &loaded));
        assert_true(loaded.enabled && !loaded.mounted);
        assert_int_equal(loaded.lines.n, 1);
        assert_string_equal(loaded.lines.items[0].text, LINE_ONE);
}

static void test_no_place(void **state) {
        static const KernelState saved;

        assert_int_equal(kernel_state_save(temporary_path(*state, "none/tlob"), &saved), -ENOENT);
        temporary_write(*state, "tlob", "a file");
        assert_int_equal(kernel_state_save(temporary_path(*state, "tlob"), &saved), -ENOTDIR);
        assert_false(is_left(*state));
        assert_int_equal(kernel_state_forget(temporary_path(*state, "tlob")), -ENOTDIR);
}

#define STATE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                STATE_TEST(test_nothing_is_left), STATE_TEST(test_each_flag),
                STATE_TEST(test_lines),           STATE_TEST(test_replaced),
                STATE_TEST(test_forgotten),       STATE_TEST(test_damaged),
                STATE_TEST(test_save_fails),      STATE_TEST(test_no_place),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
