/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From paths of cgroups to units, and back: what needs neither a mounted hierarchy nor
 * systemd. The rest is in the system suite.
 */

#include <fcntl.h>
#include <sys/stat.h>

#include "cgroup.h"
#include "temporary.h"
#include "test.h"

static void test_units_of_paths(void **state) {
        static const struct {
                const char *path;
                const char *unit; /* NULL: in none */
        } paths[] = {
                { "/system.slice/nginx.service", "nginx.service" },
                { "/system.slice/nginx.service/worker", "nginx.service" },
                { "/system.slice/system-foo.slice/foo@a.service", "foo@a.service" },
                { "/user.slice/user-1000.slice/user@1000.service/app.slice/x.service",
                  "user@1000.service" },
                { "/user.slice/user-0.slice/session-1.scope", "session-1.scope" },
                { "/init.scope", "init.scope" },
                { "/system.slice/_cpu.service", "cpu.service" },
                { "//system.slice//dev-sda1.swap/", "dev-sda1.swap" },
                { "/", NULL },
                { "", NULL },
                { "/system.slice", NULL },
                { "/docker/0123456789", NULL },
                { "/.service", NULL },
                { "/docker/x/system.slice/nginx.service", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                _cleanup_free_ char *unit = NULL;
                int r = cgroup_path_get_unit(paths[i].path, &unit);

                if (!paths[i].unit) {
                        assert_int_equal(r, -ENXIO);
                        assert_null(unit);
                } else {
                        assert_ok(r);
                        assert_string_equal(unit, paths[i].unit);
                }
        }
}

/* What a user's manager has below its own cgroup are units, too. */
static void test_path_below(void **state) {
        static const char root[] = "/user.slice/user-1000.slice/user@1000.service";
        static const struct {
                const char *root, *path, *below; /* below NULL: it is not */
        } cases[] = {
                { "", "/system.slice/nginx.service", "/system.slice/nginx.service" },
                { "", "/", "/" },
                { root, "/user.slice/user-1000.slice/user@1000.service/app.slice/x.service",
                  "/app.slice/x.service" },
                { root, root, "" },
                { root, "/user.slice/user-1000.slice/user@1000.service2/x.service", NULL },
                { root, "/user.slice/user-1000.slice/session-1.scope", NULL },
                { root, "/user.slice/user-1001.slice/user@1001.service/x.service", NULL },
                { root, "/", NULL },
        };
        _cleanup_free_ char *unit = NULL;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *below = cgroup_path_below(cases[i].root, cases[i].path);

                if (!cases[i].below)
                        assert_null(below);
                else
                        assert_string_equal(below, cases[i].below);
        }
        assert_ok(cgroup_path_get_unit(cgroup_path_below(root, cases[2].path), &unit));
        assert_string_equal(unit, "x.service");
}

static void test_path_of_unit(void **state) {
        static const struct {
                const char *slice, *unit, *path;
        } cases[] = {
                { "system.slice", "nginx.service", "/system.slice/nginx.service" },
                { "-.slice", "init.scope", "/init.scope" },
                { "system-foo.slice", "foo@a.service",
                  "/system.slice/system-foo.slice/foo@a.service" },
                { "", "x.service", "/x.service" },
                { "a-b-c.slice", "x.scope", "/a.slice/a-b.slice/a-b-c.slice/x.scope" },
                { "system.slice", "_x.service", "/system.slice/__x.service" },
                { "system.slice", "memory.service", "/system.slice/_memory.service" },
                { "system.slice", "memory-x.service", "/system.slice/memory-x.service" },
                { "cpu.slice", "cgroup.service", "/_cpu.slice/_cgroup.service" },
                { "system.slice", "odd\\x2dname.service", "/system.slice/odd\\x2dname.service" },
                { NULL, "system-getty.slice", "/system.slice/system-getty.slice" },
                { NULL, "-.slice", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *path = NULL;

                assert_ok(cgroup_path_of_unit(cases[i].slice, cases[i].unit, &path));
                assert_string_equal(path, cases[i].path);
        }
}

/* In any tree of directories: they say by their owners to whom they were delegated. */
static void test_delegated(void **state) {
        static const char *const wrong[] = {
                "", "/", "a", "//a", "/a/", "/a//b", "/./a", "/a/../a", "/a/..", "/..",
        };
        _cleanup_close_ int root = -EBADF;
        char unit[300];
        Temporary tmp;
        uint64_t id;
        unsigned level;
        struct stat st;

        temporary_init(&tmp);
        temporary_write(&tmp, "a/b/file", "");
        assert_ok(symlink("b", temporary_path(&tmp, "a/link")));
        assert_ok(stat(temporary_path(&tmp, "a/b"), &st));
        root = open(tmp.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(root >= 0);

        assert_ok(cgroup_find_delegated(root, "/a/b", st.st_uid, &id, &level));
        assert_int_equal(id, st.st_ino);
        assert_int_equal(level, 2);
        assert_ok(cgroup_find_delegated(root, "/a/later/x.service", st.st_uid, &id, &level));
        assert_int_equal(id, 0);
        assert_int_equal(level, 3);
        assert_ok(cgroup_find_delegated(root, "/a/...", st.st_uid, &id, &level));

        /* A unit may have as long a name. */
        (void) snprintf(unit, sizeof(unit), "/a/later/%0255d", 7);
        assert_ok(cgroup_find_delegated(root, unit, st.st_uid, &id, &level));
        assert_int_equal(level, 3);

        assert_int_equal(cgroup_find_delegated(root, "/a/b", st.st_uid + 1, &id, &level), -EPERM);
        assert_int_equal(cgroup_find_delegated(root, "/c/d", st.st_uid, &id, &level), -EPERM);
        assert_int_equal(cgroup_find_delegated(root, "/a/link", st.st_uid, &id, &level), -EPERM);
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                assert_int_equal(cgroup_find_delegated(root, wrong[i], st.st_uid, &id, &level),
                                 -EINVAL);
        temporary_done(&tmp);
}

static void test_limiting_unit(void **state) {
        static const struct {
                const char *path, *unit; /* NULL: nobody can tell */
        } cases[] = {
                { "/free.slice/x.service", NULL },
                { "/web.slice/x.service", "web.slice" },
                { "/web.slice/web-a.slice/x.service/sub", "web.slice" },
                { "/web.slice/tight.service", NULL },
                { "/own.slice/own.service", "own.service" },
                { "/own.slice/own.service/sub", "own.service" },
                { "/own.slice/other.service/payload", NULL },
                { "/_cpu.slice/x.service", "cpu.slice" },
                { "/no unit.slice/x.service", NULL },
                { "/gone.slice/x.service", NULL },
                { "/", NULL },
                { "", NULL },
        };
        _cleanup_close_ int root = -EBADF;
        Temporary tmp;

        temporary_init(&tmp);
        temporary_write(&tmp, "free.slice/cpu.max", "max 100000\n");
        temporary_write(&tmp, "web.slice/cpu.max", "50000 100000\n");
        temporary_write(&tmp, "web.slice/x.service/cpu.max", "max 100000\n");
        temporary_write(&tmp, "web.slice/tight.service/cpu.max", "1000 100000\n");
        temporary_write(&tmp, "own.slice/cpu.max", "max 100000\n");
        temporary_write(&tmp, "own.slice/own.service/cpu.max", "1000 100000\n");
        temporary_write(&tmp, "own.slice/other.service/payload/cpu.max", "1000 100000\n");
        temporary_write(&tmp, "_cpu.slice/cpu.max", "5000 100000\n");
        temporary_write(&tmp, "no unit.slice/cpu.max", "5000 100000\n");
        root = open(tmp.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(root >= 0);

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *unit = NULL;

                assert_ok(cgroup_path_get_limiting_unit(root, cases[i].path, &unit));
                assert_string_equal(unit ?: "", cases[i].unit ?: "");
        }
        temporary_done(&tmp);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_units_of_paths), cmocka_unit_test(test_delegated),
                cmocka_unit_test(test_limiting_unit),  cmocka_unit_test(test_path_below),
                cmocka_unit_test(test_path_of_unit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
