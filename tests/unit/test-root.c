/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "elf/root.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
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

        assert_ok(root_of_directory(temporary_path(*state, "jail"), &root));
        for (size_t i = 0; i < ELEMENTSOF(inside); i++)
                assert_text(&root, inside[i], "inside");
        assert_int_equal(root_open(&root, "/usr/escape", O_RDONLY | O_CLOEXEC), -ENOENT);
        assert_int_equal(root_open(&root, "/secret", O_RDONLY | O_CLOEXEC), -ENOENT);
}

static void test_paths(void **state) {
        _cleanup_free_ char *resolved = NULL, *outside = NULL, *jail = NULL;
        _cleanup_(root_done) Root root = ROOT_OWN;

        jail = realpath(temporary_path(*state, "jail"), NULL);
        assert_ok(root_of_directory(jail, &root));
        assert_ok(root_resolve(&root, "/absolute", &resolved));
        assert_string_equal(resolved, "/usr/lib/real");
        outside = root_outside(&root, resolved);
        assert_string_equal(outside, temporary_path(*state, "jail/usr/lib/real"));
        assert_int_equal(root_resolve(&root, "/nothing", &resolved), -ENOENT);
        assert_int_equal(root_of_directory(temporary_path(*state, "nothing"), &root), -ENOENT);
}

static void test_own(void **state) {
        _cleanup_(root_done) Root own = ROOT_OWN, process = ROOT_OWN;
        _cleanup_free_ char *resolved = NULL, *outside = NULL;

        assert_text(&own, temporary_path(*state, "secret"), "outside");
        assert_ok(root_resolve(&own, temporary_path(*state, "jail/relative"), &resolved));
        outside = root_outside(&own, "/x");
        assert_string_equal(outside, "/x");

        assert_int_equal(root_of_process((uint32_t) getpid(), &process), 1);
        assert_text(&process, temporary_path(*state, "secret"), "outside");
        assert_true(root_of_process(INT32_MAX, &own) < 0);
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
                cmocka_unit_test_setup_teardown(test_binding_in_directory, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
