/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * daemon/bpf/pin-directory.c: which directory holds, and what goes. Any file system has
 * directories; with pins in them: tests/engine/test-keep.c.
 */

#include "bpf/pin-directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "bpf/pins.h"
#include "temporary.h"
#include "test.h"

typedef struct Fixture {
        Temporary tmp;
        int keep_fd;
} Fixture;

static void fixture_init(Fixture *f) {
        temporary_init(&f->tmp);
        f->keep_fd = open(f->tmp.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(f->keep_fd >= 0);
}

static void fixture_done(Fixture *f) {
        (void) close(f->keep_fd);
        temporary_done(&f->tmp);
}

static bool is_there(const Fixture *f, const char *name) {
        return faccessat(f->keep_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
}

static int make(const Fixture *f, const char *expected) {
        int fd = pin_directory_make(f->keep_fd);

        assert_true(fd >= 0);
        assert_true(is_there(f, expected));
        return fd;
}

static void put(int fd, const char *name) {
        int file = openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        assert_true(file >= 0);
        (void) close(file);
}

static void test_make(void **state) {
        struct stat st;
        Fixture f;
        int fd;

        fixture_init(&f);
        fd = make(&f, "bpf-1");
        assert_ok(fstat(fd, &st));
        assert_int_equal(st.st_mode & 0777, 0700);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        (void) close(fd);
        (void) close(make(&f, "bpf-2"));
        assert_ok(mkdirat(f.keep_fd, "bpf-41", 0700));
        (void) close(make(&f, "bpf-42"));
        fixture_done(&f);
}

/* Numbers that no daemon has written. */
static void test_other_names(void **state) {
        static const char *const names[] = { "bpf",    "bpf-",  "bpf-0",  "bpf-01",
                                             "bpf-+9", "bpf-x", "bpf-9x", "bpf--1" };
        Fixture f;
        int fd;

        fixture_init(&f);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                assert_ok(mkdirat(f.keep_fd, names[i], 0700));
        fd = make(&f, "bpf-1");
        pin_directory_remove_others(fd);
        pin_directory_remove(fd);
        assert_false(is_there(&f, "bpf-1"));
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                assert_true(is_there(&f, names[i]));
        (void) close(fd);
        fixture_done(&f);
}

static void test_remove(void **state) {
        int first, second, third;
        Fixture f;

        fixture_init(&f);
        first = make(&f, "bpf-1");
        second = make(&f, "bpf-2");
        third = make(&f, "bpf-3");
        put(first, "link_1");
        put(second, "link_1");
        put(second, "state");
        put(third, "map_a");
        pin_directory_remove_others(second);
        assert_false(is_there(&f, "bpf-1"));
        assert_true(is_there(&f, "bpf-2/link_1"));
        assert_true(is_there(&f, "bpf-2/state"));
        assert_false(is_there(&f, "bpf-3"));
        /* Once more, of one that is not there any more. */
        pin_directory_remove(first);
        assert_true(is_there(&f, "bpf-2/state"));
        pin_directory_remove(second);
        assert_false(is_there(&f, "bpf-2"));
        (void) close(first);
        (void) close(second);
        (void) close(third);
        fixture_done(&f);
}

/* Nothing behind a link is removed, and none is taken for a directory. */
static void test_links(void **state) {
        int fd, ret_fd = -EBADF, ret_state_fd = -EBADF;
        Fixture f;

        fixture_init(&f);
        assert_ok(mkdirat(f.keep_fd, "other", 0700));
        fd = openat(f.keep_fd, "other", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        put(fd, "state");
        (void) close(fd);
        assert_ok(symlinkat("other", f.keep_fd, "bpf-7"));
        assert_true(pin_directory_find(f.keep_fd, &ret_fd, &ret_state_fd) < 0);
        fd = make(&f, "bpf-8");
        pin_directory_remove_others(fd);
        assert_true(is_there(&f, "other/state"));
        (void) close(fd);
        fixture_done(&f);
}

/* It is a map that makes one complete; a file is nothing. */
static void test_find(void **state) {
        int fd, ret_fd = -EBADF, ret_state_fd = -EBADF;
        Fixture f;

        fixture_init(&f);
        assert_int_equal(pin_directory_find(f.keep_fd, &ret_fd, &ret_state_fd), -ENOENT);
        fd = make(&f, "bpf-1");
        assert_int_equal(pin_directory_find(f.keep_fd, &ret_fd, &ret_state_fd), -ENOENT);
        put(fd, "state");
        assert_true(pin_directory_find(f.keep_fd, &ret_fd, &ret_state_fd) < 0);
        assert_int_equal(ret_fd, -EBADF);
        assert_int_equal(ret_state_fd, -EBADF);
        (void) close(fd);
        fixture_done(&f);
}

/* They take their directory with them, unless they are left. */
static void test_pins(void **state) {
        Pins *pins = NULL;
        Fixture f;

        fixture_init(&f);
        assert_ok(pins_new(&f.keep_fd, &pins));
        put(pins_get_fd(pins), "link_1");
        pins_free(pins);
        assert_false(is_there(&f, "bpf-1"));
        assert_ok(pins_new(&f.keep_fd, &pins));
        put(pins_get_fd(pins), "link_1");
        pins_leave(pins);
        pins_free(pins);
        assert_true(is_there(&f, "bpf-1/link_1"));
        assert_int_equal(pins_new(&(int) { -EBADF }, &pins), -EBADF);
        fixture_done(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_make),   cmocka_unit_test(test_other_names),
                cmocka_unit_test(test_remove), cmocka_unit_test(test_links),
                cmocka_unit_test(test_find),   cmocka_unit_test(test_pins),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
