/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The monitor's file as it reads, with lines of all kinds in it. */

#include "kernel/line.h"
#include "test.h"

static void test_lines(void **state) {
        _cleanup_(kernel_lines_done) KernelLines lines = {};

        assert_ok(kernel_lines_parse("p /usr/bin/tt:0x16d5 0x16e8 threshold=20000000\n"
                                     "p /run/e/a:b:0x10 0xffffffffffffffff threshold=1000\n",
                                     &lines));
        assert_int_equal(lines.n, 2);
        assert_string_equal(lines.items[0].path, "/usr/bin/tt");
        assert_int_equal(lines.items[0].start, 0x16d5);
        assert_int_equal(lines.items[0].stop, 0x16e8);
        assert_int_equal(lines.items[0].threshold, 20000000);
        assert_string_equal(lines.items[1].path, "/run/e/a:b");
        assert_int_equal(lines.items[1].stop, UINT64_MAX);
}

static void test_names(void **state) {
        _cleanup_(kernel_lines_done) KernelLines lines = {}, wanted = {};

        assert_ok(kernel_lines_parse("p:tlobd_1 /usr/bin/tt:0x16d5 0x16e8 threshold=20000000\n"
                                     "p:p:x-y.z /run/e/a:b:0x10 0x20 threshold=1000\n",
                                     &lines));
        assert_int_equal(lines.n, 2);
        assert_string_equal(lines.items[0].name, "tlobd_1");
        assert_string_equal(lines.items[0].path, "/usr/bin/tt");
        assert_int_equal(lines.items[0].start, 0x16d5);
        assert_string_equal(lines.items[1].name, "p:x-y.z");
        assert_string_equal(lines.items[1].path, "/run/e/a:b");

        /* The name counts. */
        assert_ok(kernel_lines_parse("p /usr/bin/tt:0x16d5 0x16e8 threshold=20000000\n"
                                     "p:tlobd_2 /usr/bin/tt:0x16d5 0x16e8 threshold=20000000\n"
                                     "p:tlobd_1 /usr/bin/tt:0x16d5 0x16e8 threshold=20000000\n",
                                     &wanted));
        assert_null(kernel_lines_find(&lines, &wanted.items[0]));
        assert_null(kernel_lines_find(&lines, &wanted.items[1]));
        assert_ptr_equal(kernel_lines_find(&lines, &wanted.items[2]), &lines.items[0]);
}

static void test_nothing(void **state) {
        KernelLines lines;

        assert_ok(kernel_lines_parse("", &lines));
        assert_int_equal(lines.n, 0);
        assert_ok(kernel_lines_parse("\n\n", &lines));
        assert_int_equal(lines.n, 0);
}

/* Kept, but not understood. */
static void test_strange_lines(void **state) {
        static const char *const strange[] = {
                "5000:0x10:0x20:/usr/bin/tt",
                "p: /usr/bin/tt:0x10 0x20 threshold=5000",
                "p:name  /usr/bin/tt:0x10 0x20 threshold=5000",
                "p:name usr/bin/tt:0x10 0x20 threshold=5000",
                "pname /usr/bin/tt:0x10 0x20 threshold=5000",
                "r:name /usr/bin/tt:0x10 0x20 threshold=5000",
                "p usr/bin/tt:0x10 0x20 threshold=5000",
                "p /usr/bin/tt 0x20 threshold=5000",
                "p /usr/bin/tt:0x10 threshold=5000",
                "p /usr/bin/tt:0x10 0x20",
                "p /usr/bin/tt:0x10 0x20 threshold=",
                "p /usr/bin/tt:0x10 0x20 threshold=5000us",
                "p /usr/bin/tt:0x10 0x20 threshold=99999999999999999999",
                "p /usr/bin/tt:0x10 0x20 budget=5000",
                "p /usr/bin/tt:0x10 0x20  threshold=5000",
                "p /usr/bin/tt:10 20 threshold=5000",
                "p /usr/bin/tt:0x 0x20 threshold=5000",
                "p /usr/bin/tt:0x10 0x20 threshold=5000 more",
                "p /",
                "p ",
                "p",
                "-/usr/bin/tt:0x10",
        };

        for (size_t i = 0; i < ELEMENTSOF(strange); i++) {
                _cleanup_(kernel_lines_done) KernelLines lines = {};

                assert_ok(kernel_lines_parse(strange[i], &lines));
                assert_int_equal(lines.n, 1);
                assert_string_equal(lines.items[0].text, strange[i]);
                assert_null(lines.items[0].path);
                assert_null(kernel_lines_find(&lines, &lines.items[0]));
        }
}

static void test_find(void **state) {
        _cleanup_(kernel_lines_done) KernelLines lines = {}, wanted = {};

        assert_ok(kernel_lines_parse("something else\n"
                                     "p /usr/bin/tt:0x10 0x20 threshold=5000\n"
                                     "p /usr/bin/tt:0x10 0x20 threshold=5001\n",
                                     &lines));
        assert_ok(kernel_lines_parse("p /usr/bin/tt:0x10 0x20 threshold=5001\n"
                                     "p /usr/bin/tu:0x10 0x20 threshold=5001\n"
                                     "p /usr/bin/tt:0x11 0x20 threshold=5001\n"
                                     "p /usr/bin/tt:0x10 0x21 threshold=5001\n",
                                     &wanted));
        assert_ptr_equal(kernel_lines_find(&lines, &wanted.items[0]), &lines.items[2]);
        for (size_t i = 1; i < wanted.n; i++)
                assert_null(kernel_lines_find(&lines, &wanted.items[i]));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),   cmocka_unit_test(test_names),
                cmocka_unit_test(test_nothing), cmocka_unit_test(test_strange_lines),
                cmocka_unit_test(test_find),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
