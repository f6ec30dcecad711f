/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "suggest/mapping.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sleeper.h"
#include "temporary.h"
#include "test.h"

/* Where its first piece is. */
static uint64_t find_begin(pid_t pid, ino_t inode) {
        _cleanup_fclose_ FILE *f = NULL;
        _cleanup_free_ char *line = NULL;
        FileMapping mapping;
        char path[64];
        size_t size = 0;

        (void) snprintf(path, sizeof(path), "/proc/%i/maps", pid);
        f = fopen(path, "re");
        while (f && getline(&line, &size, f) > 0)
                if (file_parse_mapping(line, &mapping) && mapping.identity.inode == inode)
                        return mapping.begin;
        return 0;
}

/* What is mapped there is opened, and none other. */
static void expect(pid_t pid, uint64_t begin, ino_t inode, const char *path, FileFate fate,
                   bool is_program) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_(mapping_done) Mapping mapping = {};
        FileFate found;
        struct stat st;

        assert_ok(mapping_find(pid, begin, &mapping));
        assert_ok(mapping_open(&mapping, &elf, &found));
        assert_ok(fstat(elf_file_fd(elf), &st));
        assert_int_equal(st.st_ino, inode);
        assert_string_equal(elf_file_path(elf), path);
        assert_int_equal(found, fate);
        assert_int_equal(mapping_is_program(&mapping), is_program);
}

static ino_t inode_of(const char *path) {
        struct stat st;

        assert_ok(stat(path, &st));
        return st.st_ino;
}

static void replace(Temporary *tmp, const char *path, const char *from) {
        char other[128];

        temporary_copy(tmp, "other", from);
        (void) snprintf(other, sizeof(other), "%s", temporary_path(tmp, "other"));
        assert_ok(rename(other, path));
}

static void test_program(void **state) {
        _cleanup_(mapping_done) Mapping mapping = {};
        char path[128], link[160];
        uint64_t begin;
        Temporary tmp;
        ino_t inode;
        pid_t pid;

        temporary_init(&tmp);
        temporary_copy(&tmp, "program", "/bin/sleep");
        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "program"));
        assert_ok(chmod(path, 0755));
        inode = inode_of(path);
        pid = sleeper_start(path);
        begin = find_begin(pid, inode);
        expect(pid, begin, inode, path, FILE_KEPT, true);
        assert_int_equal(mapping_find(pid, begin + 1, &mapping), -ENOENT);

        /* Of a file that has that very name, nothing is read. */
        (void) snprintf(link, sizeof(link), "%s (deleted)", path);
        replace(&tmp, path, "/bin/sleep");
        assert_ok(symlink(path, link));
        expect(pid, begin, inode, path, FILE_REPLACED, true);
        assert_ok(unlink(path));
        expect(pid, begin, inode, path, FILE_DELETED, true);

        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_not_equal(mapping_find(pid, begin, &mapping), 0);
        temporary_done(&tmp);
}

/* Only some of us can open what is left of a library. */
static bool can_open_mappings(uint64_t begin) {
        _cleanup_(mapping_done) Mapping mapping = {};
        char path[96];
        int fd;

        assert_ok(mapping_find(getpid(), begin, &mapping));
        (void) snprintf(path, sizeof(path), "/proc/self/map_files/%" PRIx64 "-%" PRIx64,
                        mapping.begin, mapping.end);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
                (void) close(fd);
        return fd >= 0;
}

static void test_library(void **state) {
        _cleanup_(mapping_done) Mapping mapping = {};
        ElfFile *elf = NULL;
        uint64_t begin;
        char path[128];
        Temporary tmp;
        FileFate fate;
        ino_t inode;
        void *p;
        int fd;

        temporary_init(&tmp);
        temporary_copy(&tmp, "library", "/bin/sleep");
        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "library"));
        inode = inode_of(path);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        p = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
        assert_true(p != MAP_FAILED);
        (void) close(fd);
        begin = (uintptr_t) p;
        expect(getpid(), begin, inode, path, FILE_KEPT, false);

        replace(&tmp, path, "/bin/sleep");
        if (can_open_mappings(begin)) {
                expect(getpid(), begin, inode, path, FILE_REPLACED, false);
        } else {
                assert_ok(mapping_find(getpid(), begin, &mapping));
                assert_int_equal(mapping_open(&mapping, &elf, &fate), -ENOENT);
        }
        (void) munmap(p, 1);
        temporary_done(&tmp);
}

static void test_strip(void **state) {
        char replaced[] = "/lib/libc.so.6 (deleted)", other[] = "/lib/ (deleted)x",
             none[] = " (deleted)";

        path_strip_deleted(replaced);
        assert_string_equal(replaced, "/lib/libc.so.6");
        path_strip_deleted(other);
        assert_string_equal(other, "/lib/ (deleted)x");
        path_strip_deleted(none);
        assert_string_equal(none, " (deleted)");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_program),
                cmocka_unit_test(test_library),
                cmocka_unit_test(test_strip),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
