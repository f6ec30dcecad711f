/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* elf/kept-file.h: the same file again, and only that. */

#include "elf/kept-file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/library.h"
#include "temporary.h"
#include "test.h"

static void copy_library(Temporary *tmp, const char *name) {
        _cleanup_free_ char *libc = NULL;

        assert_ok(library_find("libc.so.6", NULL, &libc));
        temporary_copy(tmp, name, libc);
}

/* Opens it, looks something up, and closes it. Returns the handle, which is only to be compared. */
static const void *use(const Root *root, const char *path) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_(elf_site_done) ElfSite site = {};

        assert_ok(elf_file_open_in(root, path, &elf, NULL));
        assert_ok(elf_file_resolve(elf, "fsync", &site, NULL));
        assert_true(site.offset > 0);
        return elf;
}

static void test_kept(void **state) {
        char path[128], other[128];
        _cleanup_(root_done) Root root = ROOT_OWN;
        ElfFile *elf = NULL, *second = NULL;
        const void *first;
        Temporary tmp;

        temporary_init(&tmp);
        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "a.so"));
        (void) snprintf(other, sizeof(other), "%s", temporary_path(&tmp, "b.so"));
        copy_library(&tmp, "a.so");
        assert_ok(link(path, other));
        assert_ok(root_of_directory(&ROOT_OWN, tmp.path, &root));

        kept_file_enable(true);
        first = use(&ROOT_OWN, path);
        assert_ptr_equal(use(&ROOT_OWN, path), first);
        assert_ptr_equal(use(&ROOT_OWN, path), first);
        /* Two at once are two. */
        assert_ok(elf_file_open(path, &elf, NULL));
        assert_ptr_equal(elf, first);
        assert_ok(elf_file_open(path, &second, NULL));
        assert_ptr_not_equal(second, elf);
        elf_file_free(second);
        elf_file_free(elf);

        /* By another name, in another tree, with other words in messages: it says what it is. */
        assert_ok(elf_file_open(other, &elf, NULL));
        assert_string_equal(elf_file_path(elf), other);
        elf_file_free(elf);
        assert_ok(elf_file_open_in(&root, "/b.so", &elf, NULL));
        assert_string_equal(elf_file_path(elf), other);
        elf_file_free(elf);
        assert_ok(elf_file_open(path, &elf, NULL));
        assert_ok(elf_file_set_name(elf, "something"));
        elf_file_free(elf);
        assert_ok(elf_file_open(path, &elf, NULL));
        assert_string_equal(elf_file_path(elf), path);
        elf_file_free(elf);

        /* What has been written to is read anew: here, its symbols have gone. */
        (void) use(&ROOT_OWN, path);
        assert_ok(truncate(path, 64));
        assert_int_not_equal(elf_file_open(path, &elf, NULL) == 0 &&
                                     elf_file_resolve(elf, "fsync", &(ElfSite){}, NULL) == 0,
                             1);
        elf_file_free(elf);
        kept_file_enable(false);
        temporary_done(&tmp);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kept),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
