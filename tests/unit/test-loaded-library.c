/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* file/loaded-library.h, of this process. */

#include "file/loaded-library.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/library.h"
#include "temporary.h"
#include "test.h"

#define SIZE 4096

static void copy_library(Temporary *tmp, const char *name) {
        _cleanup_free_ char *libc = NULL;

        assert_ok(library_find("libc.so.6", NULL, &libc));
        temporary_copy(tmp, name, libc);
}

static void *map(const char *path, int protection) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        void *p = mmap(NULL, SIZE, protection, MAP_PRIVATE, fd, 0);

        assert_true(p != MAP_FAILED);
        (void) close(fd);
        return p;
}

static void assert_loaded(const char *name, const char *expected) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *path = NULL;
        int r;

        assert_ok(binding_new("loaded", &binding));
        binding->executable = strdup(name);
        binding->view.main_pid = (uint32_t) getpid();
        r = loaded_library_find(binding, &path);
        assert_int_equal(r, expected ? 1 : -ENOENT);
        if (expected)
                assert_string_equal(path, expected);
}

static void test_loaded(void **state) {
        _cleanup_free_ char *libc = NULL;
        char path[128], link[128];
        Temporary tmp;
        void *data, *code;

        temporary_init(&tmp);
        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "libfrob.so.1.2"));
        (void) snprintf(link, sizeof(link), "%s", temporary_path(&tmp, "libfrob.so.1"));
        copy_library(&tmp, "libfrob.so.1.2");
        assert_ok(symlink("libfrob.so.1.2", link));
        assert_loaded("libfrob.so.1", NULL);
        data = map(path, PROT_READ);
        assert_loaded("libfrob.so.1", NULL);
        code = map(path, PROT_READ | PROT_EXEC);
        assert_loaded("libfrob.so.1", path);
        assert_loaded("libfrob.so.1.2", path);
        assert_loaded("libfrob.so", path);
        assert_loaded("libfro", NULL);
        assert_loaded("frob.so.1", NULL);

        /* What has taken its place, as after an upgrade. */
        copy_library(&tmp, "new");
        assert_ok(rename(temporary_path(&tmp, "new"), path));
        assert_loaded("libfrob.so.1", path);
        assert_ok(unlink(path));
        assert_loaded("libfrob.so.1", NULL);
        /* A link there leads to what the user may not be able to read. */
        assert_ok(library_find("libc.so.6", NULL, &libc));
        assert_ok(symlink(libc, path));
        assert_loaded("libfrob.so.1", NULL);
        assert_ok(unlink(path));
        /* But a link beside it does not. */
        copy_library(&tmp, "libfrob.so.1.3");
        assert_ok(unlink(link));
        assert_ok(symlink("libfrob.so.1.3", link));
        assert_loaded("libfrob.so.1", temporary_path(&tmp, "libfrob.so.1.3"));
        assert_ok(munmap(data, SIZE));
        assert_ok(munmap(code, SIZE));
        temporary_done(&tmp);
}

/* By a name that nobody could be told, or by way of something else than a file. */
static void test_hostile_names(void **state) {
        char path[128], link[128], fifo[128];
        Temporary tmp;
        void *code;

        temporary_init(&tmp);
        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "d\xff/libfrob.so.1"));
        copy_library(&tmp, "d\xff/libfrob.so.1");
        code = map(path, PROT_READ | PROT_EXEC);
        assert_loaded("libfrob.so.1", NULL);
        assert_ok(munmap(code, SIZE));

        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "libquux.so.1.2"));
        (void) snprintf(link, sizeof(link), "%s", temporary_path(&tmp, "libquux.so.1"));
        (void) snprintf(fifo, sizeof(fifo), "%s", temporary_path(&tmp, "fifo"));
        copy_library(&tmp, "libquux.so.1.2");
        code = map(path, PROT_READ | PROT_EXEC);
        assert_ok(unlink(path));
        assert_ok(mkfifo(fifo, 0600));
        assert_ok(symlink("fifo", link));
        assert_loaded("libquux.so.1", NULL);
        assert_ok(munmap(code, SIZE));
        temporary_done(&tmp);
}

static void test_no_library(void **state) {
        Temporary tmp;
        void *code;

        temporary_init(&tmp);
        temporary_write(&tmp, "libfrob.so.1", "This is none.");
        code = map(temporary_path(&tmp, "libfrob.so.1"), PROT_READ | PROT_EXEC);
        assert_loaded("libfrob.so.1", NULL);
        assert_ok(munmap(code, SIZE));
        temporary_done(&tmp);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_loaded),
                cmocka_unit_test(test_hostile_names),
                cmocka_unit_test(test_no_library),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
