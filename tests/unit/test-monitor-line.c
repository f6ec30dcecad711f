/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * monitor-line.h: lines of the kernel's monitor file that are taken, with their values; every kind
 * of garbage, with its errno and a sentence that names the culprit; and the names that are derived.
 */

#include "monitor-line.h"

#include "test.h"

static void test_add(void **state) {
        static const struct {
                const char *text, *name, *path;
                uint64_t start, stop, budget_ns;
        } cases[] = {
                { "p /usr/bin/myapp:0x12a0 0x12f0 threshold=5000000", NULL, "/usr/bin/myapp",
                  0x12a0, 0x12f0, 5000000 },
                { "p /usr/bin/myapp:0x12a0 threshold=5000000 0x12f0\n", NULL, "/usr/bin/myapp",
                  0x12a0, 0x12f0, 5000000 },
                { "p:request /opt/a:b:16 010 threshold=0x3e8", "request", "/opt/a:b", 16, 010,
                  1000 },
                { "p\t/x:0\t1  threshold=3600000000000 ", NULL, "/x", 0, 1, 3600000000000 },
                { "p /x:0X7fffffffffffffff 1 threshold=1000", NULL, "/x", INT64_MAX, 1, 1000 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(monitor_line_done) MonitorLine line = {};
                _cleanup_free_ char *error = NULL;

                assert_true(monitor_line_is_add(cases[i].text));
                assert_ok(monitor_line_parse(cases[i].text, &line, &error));
                assert_null(error);
                assert_false(line.remove);
                if (cases[i].name)
                        assert_string_equal(line.name, cases[i].name);
                else
                        assert_null(line.name);
                assert_string_equal(line.path, cases[i].path);
                assert_int_equal(line.start, cases[i].start);
                assert_int_equal(line.stop, cases[i].stop);
                assert_int_equal(line.budget_ns, cases[i].budget_ns);
        }
}

static void test_remove(void **state) {
        _cleanup_(monitor_line_done) MonitorLine line = {}, named = {};
        _cleanup_free_ char *error = NULL, *error_named = NULL;

        assert_true(monitor_line_is_remove("-/usr/bin/myapp:0x12a0"));
        assert_ok(monitor_line_parse("-/usr/bin/myapp:0x12a0", &line, &error));
        assert_true(line.remove);
        assert_null(line.name);
        assert_string_equal(line.path, "/usr/bin/myapp");
        assert_int_equal(line.start, 0x12a0);

        assert_ok(monitor_line_parse("-:request", &named, &error_named));
        assert_true(named.remove);
        assert_string_equal(named.name, "request");
        assert_null(named.path);
}

static void test_names_are_no_lines(void **state) {
        static const char *const names[] = {
                "", "p", "pq", "probe", "-", "-p", "-.slice/x", "nginx.service/request", "--",
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                assert_false(monitor_line_is_add(names[i]));
                assert_false(monitor_line_is_remove(names[i]));
        }
}

static const struct {
        const char *text;
        int error;
        const char *says;
} garbage[] = {
        { "", -EINVAL, "begins neither" },
        { "p", -EINVAL, "begins neither" },
        { "r /x:0x1 0x2 threshold=5000", -EINVAL, "begins neither" },
        { "5000:0x10:0x20:/x", -EINVAL, "begins neither" },
        { "p ", -EINVAL, "no file" },
        { "p:", -EINVAL, "no name" },
        { "p: /x:0x1 0x2 threshold=5000", -EINVAL, "no name" },
        { "p:n", -EINVAL, "no file" },
        { "p x:0x1 0x2 threshold=5000", -EINVAL, "'x' is not the absolute path" },
        { "p /:0x1 0x2 threshold=5000", -EINVAL, "'/' is not the absolute path" },
        { "p /x 0x1 0x2 threshold=5000", -EINVAL, "'/x' has no offset" },
        { "p /x: 0x2 threshold=5000", -EINVAL, "'' is not a start offset" },
        { "p /x:0x 0x2 threshold=5000", -EINVAL, "'0x' is not a start offset" },
        { "p /x:0x10zz 0x2 threshold=5000", -EINVAL, "'0x10zz' is not a start offset" },
        { "p /x:-1 0x2 threshold=5000", -EINVAL, "'-1' is not a start offset" },
        { "p /x:+1 0x2 threshold=5000", -EINVAL, "'+1' is not a start offset" },
        { "p /x:08 0x2 threshold=5000", -EINVAL, "'08' is not a start offset" },
        { "p /x:0x8000000000000000 1 threshold=5000", -EINVAL, "is not a start offset" },
        { "p /x:0x10000000000000000 1 threshold=5000", -EINVAL, "is not a start offset" },
        { "p /x:main 0x2 threshold=5000", -EINVAL, "'main' is not a start offset" },
        { "p /x:0x1 ret threshold=5000", -EINVAL, "'ret' is not a stop offset" },
        { "p /x:0x1 0x2 0x3 threshold=5000", -EINVAL, "'0x3' is one too many" },
        { "p /x:0x1 0x2 threshold=5000 threshold=6000", -EINVAL, "one too many" },
        { "p /x:0x1 threshold=5000", -EINVAL, "no stop offset" },
        { "p /x:0x1 0x2", -EINVAL, "no threshold=" },
        { "p /x:0x1", -EINVAL, "no stop offset" },
        { "p /x:0x1 0x01 threshold=5000", -EINVAL, "both 0x1" },
        { "p /x:0x1 0x2 threshold=", -EINVAL, "'' is not a threshold" },
        { "p /x:0x1 0x2 threshold=5ms", -EINVAL, "'5ms' is not a threshold" },
        { "p /x:0x1 0x2 threshold=-5000", -EINVAL, "'-5000' is not a threshold" },
        { "p /x:0x1 0x2 threshold=18446744073709551616", -EINVAL, "is not a threshold" },
        { "p /x:0x1 0x2 threshold=0", -ERANGE, "0ns is out of range" },
        { "p /x:0x1 0x2 threshold=999", -ERANGE, "999ns is out of range" },
        { "p /x:0x1 0x2 threshold=3600000000001", -ERANGE, "out of range" },
        { "p /x:0x1 Threshold=5000", -EINVAL, "'Threshold=5000' is not a stop" },
        { "p /x:0x1 0x2 threshold=5000\n\n", -EINVAL, "more than one line" },
        { "p /x:0x1 0x2 threshold=5000\np", -EINVAL, "more than one line" },
        { "-x:0x1", -EINVAL, "begins neither" },
        { "-/x", -EINVAL, "'/x' has no offset" },
        { "-/:0x1", -EINVAL, "'/' is not the absolute path" },
        { "-/x:0x1 0x2", -EINVAL, "blank" },
        { "-/x:", -EINVAL, "'' is not a start offset" },
        { "-:", -EINVAL, "no name" },
};

static void test_garbage(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(garbage); i++) {
                MonitorLine line = { .start = 4711 };
                _cleanup_free_ char *error = NULL;

                assert_int_equal(monitor_line_parse(garbage[i].text, &line, &error),
                                 garbage[i].error);
                assert_non_null(error);
                if (!strstr(error, garbage[i].says))
                        fail_msg("'%s': '%s'", garbage[i].text, error);
                assert_int_equal(line.start, 4711);
        }
}

static void test_derive_name(void **state) {
        static const struct {
                const char *path;
                uint64_t start;
                const char *name;
        } cases[] = {
                { "/usr/bin/myapp", 0x12a0, "myapp-0x12a0" },
                { "/usr/lib/libc.so.6", 0, "libc.so.6-0x0" },
                { "/usr/bin/[", 1, "_-0x1" },
                { "/opt/.hidden", 1, "_hidden-0x1" },
                { "/opt/g++ caf\xc3\xa9", 1, "g___caf__-0x1" },
                { "/opt/", 1, "-0x1" },
                { "/opt/a-name-of-forty-two-characters-in-all-xxxx", 0x7fffffffffffffff,
                  "a-name-of-forty-two-c-0x7fffffffffffffff" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                MonitorLine line = { .path = (char *) cases[i].path, .start = cases[i].start };
                _cleanup_free_ char *name = monitor_line_derive_name(&line);

                assert_non_null(name);
                assert_string_equal(name, cases[i].name);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_add),         cmocka_unit_test(test_remove),
                cmocka_unit_test(test_garbage),     cmocka_unit_test(test_names_are_no_lines),
                cmocka_unit_test(test_derive_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
