/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * whole-file.h, where a directory's owner changes it at the worst moment, and on a file system that
 * makes no files without a name. What else there is to it is in tests/client/test-metrics.
 */

#include "whole-file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "temporary.h"
#include "test.h"

static bool needs_name;       /* the file system */
static int lost;              /* what it has to say of what was written, when it is asked */
static int name_lost;         /* the same of names */
static bool may_not_give;     /* files to other groups */
static void (*changes)(void); /* what is looked at, as soon as it has been */
static Temporary tmp;

/* As the calls are named where sizes of files have 64 bits. */
int __real_openat64(int directory, const char *path, int flags, ...);
int __wrap_openat64(int directory, const char *path, int flags, ...);
int __real_fstatat64(int directory, const char *path, struct stat *st, int flags);
int __wrap_fstatat64(int directory, const char *path, struct stat *st, int flags);

int __wrap_openat64(int directory, const char *path, int flags, ...) {
        if (needs_name && (flags & O_TMPFILE) == O_TMPFILE) {
                errno = EOPNOTSUPP;
                return -1;
        }
        return __real_openat64(directory, path, flags, 0600);
}

int __wrap_fstatat64(int directory, const char *path, struct stat *st, int flags) {
        int r = __real_fstatat64(directory, path, st, flags);

        if (changes)
                changes();
        return r;
}

int __real_fchown(int fd, uid_t user, gid_t group);
int __wrap_fchown(int fd, uid_t user, gid_t group);

int __wrap_fchown(int fd, uid_t user, gid_t group) {
        if (!may_not_give)
                return __real_fchown(fd, user, group);
        errno = EPERM;
        return -1;
}

int __wrap_fsync(int fd);

int __wrap_fsync(int fd) {
        struct stat st;

        assert_int_equal(fstat(fd, &st), 0);
        errno = S_ISDIR(st.st_mode) ? name_lost : lost;
        return errno ? -1 : 0;
}

static int give_text(FILE *f, const void *userdata) {
        (void) fputs(userdata, f);
        return 0;
}

static int write_text(const char *name, const char *text) {
        return whole_file_write(temporary_path(&tmp, name), WHOLE_FILE_KEPT, give_text, text);
}

static void assert_text(const char *name, const char *expected) {
        char text[64] = "";
        FILE *f = fopen(temporary_path(&tmp, name), "re");

        assert_non_null(f);
        (void) fread(text, 1, sizeof(text) - 1, f);
        (void) fclose(f);
        assert_string_equal(text, expected);
}

static void assert_alone(void) {
        DIR *directory = opendir(tmp.path);
        size_t n = 0;

        assert_non_null(directory);
        while (readdir(directory))
                n++;
        (void) closedir(directory);
        assert_int_equal(n, 3);
}

static int set_up(void **state) {
        temporary_init(&tmp);
        return 0;
}

static int tear_down(void **state) {
        needs_name = may_not_give = false;
        lost = name_lost = 0;
        changes = NULL;
        temporary_done(&tmp);
        return 0;
}

static void test_file_with_name(void **state) {
        needs_name = true;
        assert_ok(write_text("file", "old"));
        assert_ok(write_text("file", "new"));
        assert_text("file", "new");
        assert_alone();
}

static void test_full(void **state) {
        struct rlimit before, limit;

        assert_ok(write_text("file", "old"));
        assert_ok(getrlimit(RLIMIT_FSIZE, &before));
        limit = before;
        limit.rlim_cur = 2;
        for (int i = 0; i < 2; i++) {
                int r;

                needs_name = i == 1;
                assert_ok(setrlimit(RLIMIT_FSIZE, &limit));
                r = write_text("file", "new");
                assert_ok(setrlimit(RLIMIT_FSIZE, &before));
                assert_int_equal(r, -EFBIG);
                assert_text("file", "old");
                assert_alone();
        }
}

/* A server that has no room left tells it late. */
static void test_lost(void **state) {
        assert_ok(write_text("file", "old"));
        for (int i = 0; i < 2; i++) {
                needs_name = i == 1;
                lost = EDQUOT;
                assert_int_equal(write_text("file", "new"), -EDQUOT);
                assert_text("file", "old");
                assert_alone();
                lost = EINVAL; /* it knows of no such thing */
                assert_ok(write_text("file", "old"));
        }
}

static void test_lost_name(void **state) {
        name_lost = EIO;
        assert_int_equal(write_text("file", "new"), -EIO);
        assert_text("file", "new");
        assert_alone();
}

static mode_t mode_of(const char *name) {
        struct stat st;

        assert_ok(stat(temporary_path(&tmp, name), &st));
        return st.st_mode & 07777;
}

static void test_permissions(void **state) {
        mode_t mask = umask(0027);

        assert_ok(write_text("file", "a page"));
        assert_int_equal(mode_of("file"), 0640);
        assert_ok(chmod(temporary_path(&tmp, "file"), 0600));
        assert_ok(write_text("file", "another"));
        assert_int_equal(mode_of("file"), 0600);
        assert_ok(
                whole_file_write(temporary_path(&tmp, "file"), WHOLE_FILE_SCRAPED, give_text, ""));
        assert_int_equal(mode_of("file"), 0644);
        (void) umask(mask);
}

static gid_t group_of(const char *name) {
        struct stat st;

        assert_ok(stat(temporary_path(&tmp, name), &st));
        return st.st_gid;
}

/* Who may give files to groups is root. */
static void test_group(void **state) {
        if (geteuid() != 0)
                skip();
        temporary_write(&tmp, "file", "a page");
        assert_ok(chown(temporary_path(&tmp, "file"), (uid_t) -1, 4711));
        assert_ok(chmod(temporary_path(&tmp, "file"), 0640));
        assert_ok(write_text("file", "another"));
        assert_text("file", "another");
        assert_int_equal(group_of("file"), 4711);
        assert_int_equal(mode_of("file"), 0640);
        may_not_give = true;
        assert_ok(write_text("file", "a third"));
        assert_int_equal(group_of("file"), getegid());
        assert_int_equal(mode_of("file"), 0600);
}

static void make_pipe(void) {
        (void) unlink(temporary_path(&tmp, "file"));
        assert_ok(mkfifo(temporary_path(&tmp, "file"), 0600));
}

static void become_link(void) {
        _cleanup_free_ char *target = strdup(temporary_path(&tmp, "target"));

        assert_non_null(target);
        assert_ok(unlink(temporary_path(&tmp, "file")));
        assert_ok(symlink(target, temporary_path(&tmp, "file")));
}

static void become_file(void) {
        assert_ok(unlink(temporary_path(&tmp, "file")));
        temporary_write(&tmp, "file", "keep");
}

/* A pipe would be written to. */
static void test_changing(void **state) {
        temporary_write(&tmp, "target", "keep");
        make_pipe();
        changes = become_link;
        assert_int_equal(write_text("file", "text"), -ELOOP);
        assert_text("target", "keep");

        make_pipe();
        changes = become_file;
        assert_int_equal(write_text("file", "text"), -EBUSY);
        assert_text("file", "keep");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_file_with_name, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_full, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_lost, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_lost_name, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_permissions, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_group, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_changing, set_up, tear_down),
        };

        (void) signal(SIGXFSZ, SIG_IGN);
        (void) alarm(5);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
