/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/root.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "binding/binding.h"
#include "binding/keys.h"
#include "binding/resolve.h"
#include "elf/library.h"
#include "temporary.h"
#include "test.h"

static int setup(void **state) {
        Temporary *tmp = calloc(1, sizeof(*tmp));

        assert_non_null(tmp);
        temporary_init(tmp);
        temporary_write(tmp, "jail/usr/lib/real", "inside");
        temporary_write(tmp, "secret", "outside");
        assert_ok(symlink("/usr/lib/real", temporary_path(tmp, "jail/absolute")));
        assert_ok(symlink("usr/lib/real", temporary_path(tmp, "jail/relative")));
        assert_ok(symlink("../../../../../../secret", temporary_path(tmp, "jail/usr/escape")));
        *state = tmp;
        return 0;
}

static int teardown(void **state) {
        temporary_done(*state);
        free(*state);
        return 0;
}

static void assert_text(const Root *root, const char *path, const char *expected) {
        _cleanup_close_ int fd = root_open(root, path, O_RDONLY | O_CLOEXEC);
        char text[32] = "";

        assert_true(fd >= 0);
        assert_true(read(fd, text, sizeof(text) - 1) > 0);
        assert_string_equal(text, expected);
}

static void test_links_stay_inside(void **state) {
        static const char *const inside[] = {
                "/usr/lib/real", "usr/lib/real", "/absolute", "/relative", "/../../usr/lib/real",
        };
        _cleanup_(root_done) Root root = ROOT_OWN;

        assert_ok(root_of_directory(&ROOT_OWN, temporary_path(*state, "jail"), &root));
        for (size_t i = 0; i < ELEMENTSOF(inside); i++)
                assert_text(&root, inside[i], "inside");
        assert_int_equal(root_open(&root, "/usr/escape", O_RDONLY | O_CLOEXEC), -ENOENT);
        assert_int_equal(root_open(&root, "/secret", O_RDONLY | O_CLOEXEC), -ENOENT);
}

static void test_paths(void **state) {
        _cleanup_free_ char *resolved = NULL, *outside = NULL, *jail = NULL;
        _cleanup_(root_done) Root root = ROOT_OWN;

        jail = realpath(temporary_path(*state, "jail"), NULL);
        assert_ok(root_of_directory(&ROOT_OWN, jail, &root));
        assert_ok(root_resolve(&root, "/absolute", &resolved));
        assert_string_equal(resolved, "/usr/lib/real");
        outside = root_outside(&root, resolved);
        assert_string_equal(outside, temporary_path(*state, "jail/usr/lib/real"));
        assert_string_equal(root_inside(&root, outside), resolved);
        assert_null(root_inside(&root, temporary_path(*state, "jailer/x")));
        assert_null(root_inside(&root, "/usr"));
        assert_int_equal(root_resolve(&root, "/nothing", &resolved), -ENOENT);
        assert_int_equal(root_of_directory(&ROOT_OWN, temporary_path(*state, "nothing"), &root),
                         -ENOENT);
}

static void test_own(void **state) {
        _cleanup_(root_done) Root own = ROOT_OWN, process = ROOT_OWN;
        _cleanup_free_ char *resolved = NULL, *outside = NULL;

        assert_text(&own, temporary_path(*state, "secret"), "outside");
        assert_ok(root_resolve(&own, temporary_path(*state, "jail/relative"), &resolved));
        outside = root_outside(&own, "/x");
        assert_string_equal(outside, "/x");
        assert_string_equal(root_inside(&own, outside), "/x");

        assert_int_equal(root_of_process((uint32_t) getpid(), &process), 1);
        assert_text(&process, temporary_path(*state, "secret"), "outside");
        assert_true(root_of_process(INT32_MAX, &own) < 0);
}

/* In processes of their own: 0 if all is as it is to be, else the line that is not. */
#define expect(condition)                                                                          \
        do {                                                                                       \
                if (!(condition))                                                                  \
                        return __LINE__;                                                           \
        } while (0)

/* Runs f in a new process, and returns what it has returned, if that is less than 256. */
static int in_child(int (*f)(Temporary *tmp), Temporary *tmp) {
        pid_t pid = fork();
        int status;

        if (pid == 0)
                _exit(f(tmp));
        if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
                return __LINE__;
        return WEXITSTATUS(status);
}

/* Who has no right to look through the root of PID 1 sees what it sees. */
static int see_without_rights(Temporary *tmp) {
        _cleanup_(root_done) Root machine = ROOT_OWN;
        struct stat st;

        expect(setuid(65534) >= 0);
        expect(root_of_machine(&machine) == -EACCES);
        expect(machine.fd < 0);
        expect(root_stat_anywhere(temporary_path(tmp, "secret"), &st) == -ENOENT);
        return 0;
}

/* As a service whose sandbox hides the directory, and a part of what is below it. */
static int see_hidden(Temporary *tmp) {
        _cleanup_(root_done) Root machine = ROOT_OWN;
        _cleanup_closedir_ DIR *dir = NULL;
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *path = NULL;
        char text[32] = "";
        struct stat st;

        expect(unshare(CLONE_NEWNS) >= 0);
        expect(mount("hidden", tmp->path, "tmpfs", 0, "mode=755") >= 0);
        expect(stat(temporary_path(tmp, "secret"), &st) < 0);

        expect(root_of_machine(&machine) == 0);
        expect(!machine.path);
        expect(root_resolve(&machine, temporary_path(tmp, "to-home"), &path) >= 0);
        expect(streq(path, temporary_path(tmp, "secret")));
        fd = root_open_anywhere(temporary_path(tmp, "to-home"), O_RDONLY | O_CLOEXEC);
        expect(read(fd, text, sizeof(text) - 1) > 0);
        expect(streq(text, "outside"));
        expect(root_stat_anywhere(temporary_path(tmp, "secret"), &st) >= 0);
        expect(st.st_size == (off_t) strlen(text));
        dir = root_open_directory_anywhere(temporary_path(tmp, "jail"));
        expect(dir);
        expect(root_stat_anywhere(temporary_path(tmp, "nothing"), &st) == -ENOENT);
        expect(!root_open_directory_anywhere(temporary_path(tmp, "secret")) && errno == ENOTDIR);
        return in_child(see_without_rights, tmp);
}

/* As PID 1. */
static int see_all(Temporary *tmp) {
        _cleanup_(root_done) Root machine = ROOT_OWN;

        expect(mount("proc", "/proc", "proc", 0, NULL) >= 0);
        expect(root_of_machine(&machine) == 1);
        expect(machine.fd < 0);
        return in_child(see_hidden, tmp);
}

static int begin_machine(Temporary *tmp) {
        expect(unshare(CLONE_NEWNS | CLONE_NEWPID) >= 0);
        expect(mount(NULL, "/", "none", MS_REC | MS_PRIVATE, NULL) >= 0);
        return in_child(see_all, tmp);
}

/* What our own mounts hide is in the tree of PID 1. Needs root. */
static void test_machine(void **state) {
        Temporary *tmp = *state;
        _cleanup_free_ char *target = strdup(temporary_path(tmp, "secret"));

        if (geteuid() != 0)
                skip();
        assert_non_null(target);
        assert_ok(symlink(target, temporary_path(tmp, "to-home")));
        assert_int_equal(in_child(begin_machine, tmp), 0);
}

static void copy(const char *from, const char *to) {
        _cleanup_fclose_ FILE *in = fopen(from, "re"), *out = fopen(to, "we");
        char buffer[65536];
        size_t n;

        assert_non_null(in);
        assert_non_null(out);
        while ((n = fread(buffer, 1, sizeof(buffer), in)) > 0)
                assert_int_equal(fwrite(buffer, 1, n, out), n);
}

/* Of a unit with RootDirectory=, the library is the one in there, not the machine's. */
static void test_binding_in_directory(void **state) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *libc = NULL, *error = NULL;
        Temporary *tmp = *state;
        struct stat inside, opened;
        char name[PATH_MAX];

        assert_ok(library_find("libc.so.6", NULL, &libc));
        temporary_write(tmp, "jail/lib/x", "");
        (void) snprintf(name, sizeof(name), "jail/lib/%s", "libc.so.6");
        copy(libc, temporary_path(tmp, name));
        assert_ok(stat(temporary_path(tmp, name), &inside));

        assert_ok(binding_new("x", &binding));
        assert_ok(binding_set_key(binding, "Unit", "x.service", NULL));
        assert_ok(binding_set_key(binding, "Executable", "libc.so.6", NULL));
        assert_ok(binding_set_key(binding, "Function", "fsync", NULL));
        assert_ok(binding_set_key(binding, "BudgetSec", "1s", NULL));
        binding->view.root_directory = strdup(temporary_path(tmp, "jail"));
        if (binding_resolve(binding, &file, &error) < 0)
                fail_msg("%s", error);
        assert_string_equal(binding->resolved.path, temporary_path(tmp, name));
        assert_string_equal(binding->resolved.inner_path, "/lib/libc.so.6");
        assert_ok(fstat(file->fd, &opened));
        assert_int_equal(opened.st_ino, inside.st_ino);

        /*
         * An image is seen by its unit's processes only, and a process that has just begun is not
         * there yet.
         */
        free(binding->view.root_directory);
        binding->view.root_directory = NULL;
        binding->view.has_root_image = true;
        file = binding_file_free(file);
        assert_int_equal(binding_resolve(binding, &file, &error), -EAGAIN);
        binding->view.main_pid = (uint32_t) getpid();
        assert_int_equal(binding_resolve(binding, &file, NULL), -EAGAIN);
        binding->view.has_root_image = false;
        assert_ok(binding_resolve(binding, &file, NULL));
        assert_string_equal(binding->resolved.path, libc);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_links_stay_inside, setup, teardown),
                cmocka_unit_test_setup_teardown(test_paths, setup, teardown),
                cmocka_unit_test_setup_teardown(test_own, setup, teardown),
                cmocka_unit_test_setup_teardown(test_machine, setup, teardown),
                cmocka_unit_test_setup_teardown(test_binding_in_directory, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
