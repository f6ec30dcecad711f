/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* daemon/keep.c: what is refused anywhere. In a BPF file system: tests/engine/test-keep.c. */

#include "keep.h"

#include "base/cleanup.h"
#include "temporary.h"
#include "test.h"

static void assert_refused(const char *path, const char *expected) {
        _cleanup_free_ char *reason = NULL;
        int fd = -EBADF;

        assert_true(keep_open(path, &fd, &reason) < 0);
        assert_non_null(strstr(reason, expected));
        assert_int_equal(fd, -EBADF);
}

static void test_other_file_system(void **state) {
        char path[256];
        Temporary tmp;

        temporary_init(&tmp);
        assert_refused(tmp.path, "is not in a BPF file system, such as /sys/fs/bpf");
        (void) snprintf(path, sizeof(path), "%s///", tmp.path);
        assert_refused(path, "is not in a BPF file system");
        /* It is not made, either. */
        (void) snprintf(path, sizeof(path), "%s/new", tmp.path);
        assert_refused(path, "is not in a BPF file system");
        assert_int_equal(access(path, F_OK), -1);
        (void) snprintf(path, sizeof(path), "%s/new/newer", tmp.path);
        assert_refused(path, "No such file or directory");
        temporary_write(&tmp, "file", "text");
        assert_refused(temporary_path(&tmp, "file"), "Not a directory");
        temporary_done(&tmp);
        assert_refused("/", "is not in a BPF file system");
}

/* Whatever it points to, and if there is nothing. */
static void test_link(void **state) {
        char path[256];
        Temporary tmp;

        temporary_init(&tmp);
        (void) snprintf(path, sizeof(path), "%s/link", tmp.path);
        assert_ok(symlink(tmp.path, path));
        assert_refused(path, "/link is a symbolic link");
        (void) snprintf(path, sizeof(path), "%s/link/", tmp.path);
        assert_refused(path, "/link is a symbolic link");
        (void) snprintf(path, sizeof(path), "%s/dangling", tmp.path);
        assert_ok(symlink("/nonexistent", path));
        assert_refused(path, "/dangling is a symbolic link");
        temporary_done(&tmp);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_other_file_system),
                cmocka_unit_test(test_link),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
