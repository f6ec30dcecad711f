/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The file that was read last is used again as long as it is the one at its path, unchanged. What
 * was written a moment ago is not kept, so that these files are made two seconds before.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/root.h"
#include "elf/file.h"
#include "elf/recent.h"
#include "temporary.h"
#include "test.h"

#define FUNCTION "test_function_of_this_program"

/* Whose symbol is looked for: these files are copies of this program. */
__attribute__((noinline, used, visibility("default"))) void test_function_of_this_program(void);
void test_function_of_this_program(void) {
}

static Temporary tmp;

static ElfFile *open_named(const char *name) {
        ElfFile *elf = NULL;

        assert_ok(elf_file_open(temporary_path(&tmp, name), &elf, NULL));
        return elf;
}

static ElfFile *open_file(void) {
        return open_named("file");
}

/* A question about it; what is returned is only good for comparing. */
static const ElfFile *ask_of(const char *name) {
        _cleanup_(elf_file_freep) ElfFile *elf = open_named(name);
        _cleanup_(elf_site_done) ElfSite site = {};

        assert_ok(elf_file_resolve(elf, FUNCTION, &site, NULL));
        return elf;
}

static const ElfFile *ask(void) {
        return ask_of("file");
}

static int setup(void **state) {
        temporary_init(&tmp);
        temporary_copy(&tmp, "file", "/proc/self/exe");
        temporary_copy(&tmp, "new", "/proc/self/exe");
        temporary_copy(&tmp, "written", "/proc/self/exe");
        (void) usleep(2100000);
        return 0;
}

static int teardown(void **state) {
        temporary_done(&tmp);
        return 0;
}

static int drop(void **state) {
        elf_recent_drop();
        return 0;
}

/* After some time it is read again: on a machine that stands still, even soon. */
static void test_kept(void **state) {
        unsigned n = 0;

        for (unsigned i = 0; i < 10; i++) {
                const ElfFile *first = ask();

                assert_true(elf_recent_is_there());
                n += ask() == first;
        }
        assert_true(n > 0);
        elf_recent_drop();
        assert_false(elf_recent_is_there());
}

/* Neither is one that was not read far, nor one that is not as it would be opened. */
static void test_not_kept(void **state) {
        _cleanup_(elf_site_done) ElfSite site = {};
        ElfFile *elf = open_file();

        elf_file_free(elf);
        assert_false(elf_recent_is_there());
        elf = open_file();
        assert_ok(elf_file_set_name(elf, "another name"));
        assert_ok(elf_file_resolve(elf, FUNCTION, &site, NULL));
        elf_file_free(elf);
        assert_false(elf_recent_is_there());
}

static void test_fresh(void **state) {
        temporary_copy(&tmp, "fresh", "/proc/self/exe");
        (void) ask_of("fresh");
        assert_false(elf_recent_is_there());
}

/* There are never the symbols of two in memory. */
static void test_another(void **state) {
        _cleanup_(elf_file_freep) ElfFile *other = NULL;
        _cleanup_(elf_site_done) ElfSite site = {};

        (void) ask();
        assert_ok(elf_file_open("/proc/self/exe", &other, NULL));
        assert_true(elf_recent_is_there());
        assert_ok(elf_file_resolve(other, FUNCTION, &site, NULL));
        assert_false(elf_recent_is_there());
}

/* What a file has become is read: whether it is another one at its path, or was written to. */
static void test_changed(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        char path[512];
        int fd;

        (void) ask_of("written");
        assert_true(elf_recent_is_there());
        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "written"));
        fd = open(path, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, "no ELF file any more", 20, 0), 20);
        assert_ok(close(fd));
        assert_int_equal(elf_file_open(path, &elf, NULL), -ENOEXEC);

        (void) ask();
        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "file"));
        assert_ok(rename(temporary_path(&tmp, "new"), path));
        elf = open_file();
        assert_true(elf_recent_is_there());
}

/* The same path in another tree. */
static void test_other_root(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_(elf_site_done) ElfSite site = {};
        _cleanup_(root_done) Root root = ROOT_OWN;

        assert_ok(root_of_directory(&ROOT_OWN, temporary_path(&tmp, ""), &root));
        assert_ok(elf_file_open_in(&root, "/file", &elf, NULL));
        assert_ok(elf_file_resolve(elf, FUNCTION, &site, NULL));
        elf_file_free(TAKE_PTR(elf));
        assert_true(elf_recent_is_there());
        elf = open_file();
        assert_true(elf_recent_is_there());
}

#define TEST(f) cmocka_unit_test_teardown(f, drop)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_kept),    TEST(test_fresh),      TEST(test_not_kept),
                TEST(test_another), TEST(test_other_root), TEST(test_changed),
        };

        elf_recent_begin();
        return cmocka_run_group_tests(tests, setup, teardown);
}
