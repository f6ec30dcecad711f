/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "file/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "binding/executable.h"
#include "file/place.h"
#include "sleeper.h"
#include "temporary.h"
#include "test.h"

static void look(const char *path, const struct stat *st, FileMaps *maps) {
        MappedFile file = { .identity = { st->st_dev, st->st_ino }, .path = path };

        *maps = (FileMaps) {};
        assert_ok(file_maps_of_process((uint32_t) getpid(), &file, maps));
        assert_int_equal(maps->n_processes, 1);
}

static void test_own_maps(void **state) {
        Temporary tmp;
        struct stat st;
        MappedFile other;
        FileMaps maps;
        char path[128];
        void *mapped;
        int fd;

        temporary_init(&tmp);
        temporary_write(&tmp, "file", "x");
        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "file"));
        assert_ok(stat(path, &st));
        look(path, &st, &maps);
        assert_false(maps.is_mapped);
        assert_false(maps.is_replaced);

        fd = open(path, O_RDONLY | O_CLOEXEC);
        mapped = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
        assert_true(mapped != MAP_FAILED);
        (void) close(fd);
        look(path, &st, &maps);
        assert_true(maps.is_mapped);
        look("/another/path", &st, &maps);
        assert_true(maps.is_mapped);

        /* Of a file that is not the one that the process sees at that path. */
        other = (MappedFile) { .identity = { st.st_dev, 1 }, .path = path };
        maps = (FileMaps) {};
        assert_ok(file_maps_of_process((uint32_t) getpid(), &other, &maps));
        assert_true(maps.is_mapped);
        other.path_is_others = true;
        maps = (FileMaps) {};
        assert_ok(file_maps_of_process((uint32_t) getpid(), &other, &maps));
        assert_false(maps.is_mapped);

        /* Another file at that path, as after an upgrade. */
        temporary_write(&tmp, "new", "y");
        assert_ok(rename(temporary_path(&tmp, "new"), path));
        assert_ok(stat(path, &st));
        look(path, &st, &maps);
        assert_false(maps.is_mapped);
        assert_true(maps.is_replaced);
        assert_ok(munmap(mapped, 1));
        look(path, &st, &maps);
        assert_false(maps.is_replaced);
        temporary_done(&tmp);
}

static int open_old(const OldProgram *old, ino_t *ret_inode) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ char *inner_path = NULL, *error = NULL;
        struct stat st;
        int r;

        assert_ok(binding_new("old", &binding));
        binding->view.old = *old;
        r = binding_open_executable(binding, &inner_path, &elf, &error);
        if (r < 0)
                return r;
        assert_non_null(strstr(elf_file_path(elf), "the program of process "));
        assert_ok(fstat(elf_file_fd(elf), &st));
        *ret_inode = st.st_ino;
        return 0;
}

/* Who still runs what was at the path before, also when somebody runs what is there now. */
static void test_old_program(void **state) {
        pid_t old, new;
        char path[128], command[512];
        MappedFile file = { .path = path, .wants_old = true };
        FileMaps maps = {};
        struct stat before, now;
        Temporary tmp;
        ino_t inode;

        temporary_init(&tmp);
        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "program"));
        (void) snprintf(command, sizeof(command), "cp /usr/bin/sleep %s", path);
        assert_int_equal(system(command), 0);
        assert_ok(stat(path, &before));
        old = sleeper_start(path);
        (void) snprintf(command, sizeof(command), "cp /usr/bin/sleep %s.new && mv %s.new %s", path,
                        path, path);
        assert_int_equal(system(command), 0);
        assert_ok(stat(path, &now));
        new = sleeper_start(path);
        file.identity = (MappedIdentity) { now.st_dev, now.st_ino };

        assert_ok(file_maps_of_process((uint32_t) new, &file, &maps));
        assert_true(maps.is_mapped);
        assert_int_equal(maps.old.pid, 0);
        assert_ok(file_maps_of_process((uint32_t) old, &file, &maps));
        assert_true(maps.is_replaced);
        assert_int_equal(maps.old.pid, old);
        assert_int_equal(maps.old.mapped.inode, before.st_ino);
        assert_ok(open_old(&maps.old, &inode));
        assert_int_equal(inode, before.st_ino);

        /* Its number is another process's by now. */
        assert_int_equal(open_old(&(OldProgram) { (uint32_t) new, maps.old.mapped }, &inode),
                         -ESTALE);
        assert_int_equal(kill(old, SIGKILL), 0);
        assert_int_equal(waitpid(old, NULL, 0), old);
        assert_int_equal(open_old(&maps.old, &inode), -ESTALE);
        assert_int_equal(kill(new, SIGKILL), 0);
        assert_int_equal(waitpid(new, NULL, 0), new);
        temporary_done(&tmp);
}

static unsigned count(const char *path, const char *cgroup_path, unsigned *ret_outside) {
        MappedFile file = { .path = path };
        struct stat st;
        FileUsers users;

        assert_ok(stat(path, &st));
        file.identity.device = st.st_dev;
        file.identity.inode = st.st_ino;
        assert_ok(file_maps_count(&file, cgroup_path, &users));
        *ret_outside = users.n_outside;
        return users.n_processes;
}

/* As /proc has it, "0::/a/b". */
static char *own_cgroup(void) {
        char line[4096];
        char *path = NULL;
        FILE *f = fopen("/proc/self/cgroup", "re");

        assert_non_null(f);
        while (!path && fgets(line, sizeof(line), f)) {
                line[strcspn(line, "\n")] = '\0';
                if (strncmp(line, "0::", 3) == 0)
                        path = strdup(line + 3);
        }
        (void) fclose(f);
        return path;
}

static void test_count(void **state) {
        _cleanup_free_ char *cgroup = own_cgroup();
        unsigned outside;
        Temporary tmp;
        char path[128];
        void *mapped;
        int fd;

        temporary_init(&tmp);
        temporary_write(&tmp, "file", "x");
        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "file"));
        assert_int_equal(count(path, NULL, &outside), 0);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        mapped = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
        assert_true(mapped != MAP_FAILED);
        (void) close(fd);
        assert_int_equal(count(path, NULL, &outside), 1);
        assert_int_equal(outside, 1);
        assert_int_equal(count(path, "/no.slice/such.service", &outside), 1);
        assert_int_equal(outside, 1);
        if (cgroup) {
                assert_int_equal(count(path, cgroup, &outside), 1);
                assert_int_equal(outside, 0);
        }
        assert_ok(munmap(mapped, 1));
        temporary_done(&tmp);
}

static void test_cgroups(void **state) {
        assert_true(file_maps_cgroup_has("/a.slice/b.service", "/a.slice/b.service"));
        assert_true(file_maps_cgroup_has("/a.slice/b.service", "/a.slice/b.service/c"));
        assert_true(file_maps_cgroup_has("/a.slice", "/a.slice/b.service"));
        assert_false(file_maps_cgroup_has("/a.slice/b.service", "/a.slice/b.services"));
        assert_false(file_maps_cgroup_has("/a.slice/b.service", "/a.slice"));
        assert_true(file_maps_cgroup_has("/", "/a.slice"));
        /* A template's, and one of its instances. */
        assert_true(file_maps_cgroup_has("/a.slice/b@.service", "/a.slice/b@x.service"));
        assert_true(file_maps_cgroup_has("/a.slice/b@.service", "/a.slice/b@x.service/c"));
        assert_false(file_maps_cgroup_has("/a.slice/b@.service", "/a.slice/b@x.scope"));
        assert_false(file_maps_cgroup_has("/a.slice/b@.service", "/a.slice/bb@x.service"));
        assert_false(file_maps_cgroup_has("/a.slice/b@y.service", "/a.slice/b@x.service"));
}

static void test_gone(void **state) {
        MappedFile file = { .path = "/x" };
        FileMaps maps = {};

        assert_int_equal(file_maps_of_process(INT32_MAX, &file, &maps), -ENOENT);
        assert_int_equal(maps.n_processes, 0);
        assert_true(file_maps_of_cgroup("/no.slice/such.service", &file, &maps) < 0);
}

static void test_place(void **state) {
        char *place;

        place = file_place("/proc/self/exe");
        assert_string_equal(place, "/proc");
        free(place);
        place = file_place("/nonexistent/directory/file");
        assert_string_equal(place, "/nonexistent/directory");
        free(place);
        assert_null(file_place("name"));
}

/* Whatever device the file system shows there, and wherever the file is by now. */
static void test_identity(void **state) {
        MappedFile file = { .path = "/another/path" };
        FileMaps maps = {};
        char path[128], away[136];
        Temporary tmp;
        void *mapped;
        int fd;

        temporary_init(&tmp);
        temporary_write(&tmp, "file", "x");
        (void) snprintf(path, sizeof(path), "%s", temporary_path(&tmp, "file"));
        (void) snprintf(away, sizeof(away), "%s.away", path);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        file.identity = file_identify_mapping(fd);
        assert_true(file.identity.inode > 0);
        assert_ok(file_maps_of_process((uint32_t) getpid(), &file, &maps));
        assert_false(maps.is_mapped);

        mapped = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
        assert_true(mapped != MAP_FAILED);
        assert_int_equal(rename(path, away), 0);
        assert_ok(file_maps_of_process((uint32_t) getpid(), &file, &maps));
        assert_true(maps.is_mapped);
        (void) munmap(mapped, 1);
        (void) close(fd);
        assert_int_equal(rename(away, path), 0);
        temporary_done(&tmp);

        fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(file_identify_mapping(fd).inode, 0);
        (void) close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_own_maps), cmocka_unit_test(test_old_program),
                cmocka_unit_test(test_count),    cmocka_unit_test(test_cgroups),
                cmocka_unit_test(test_gone),     cmocka_unit_test(test_place),
                cmocka_unit_test(test_identity),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
