/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * unit/files.h: which files count and for which units, and that a second look opens what changed.
 */

#include "unit/files.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "temporary.h"
#include "test.h"

#define SECTION "[X-Tlob a]\nFunction=f\n"

static void look(UnitFiles *files, const char *directory) {
        const char *const directories[] = { "/nonexistent", directory, NULL };
        int r;

        assert_ok(unit_files_begin(files, directories));
        /* In small steps: it can be left off anywhere. */
        while ((r = unit_files_step(files, 1)) > 0)
                ;
        assert_ok(r);
}

static size_t count(const UnitFiles *files) {
        size_t n;

        (void) unit_files_patterns(files, &n);
        return n;
}

static void test_names(void **state) {
        static const char *const with[] = {
                "one.service",
                "many@.service",
                "many@x.service.d/a.conf",
                "pre-.service.d/a.conf",
                "slice.d/a.conf",
                "s.scope.d/a.conf",
                "many@.service.d/b.conf",
        };
        static const char *const without[] = {
                "a.socket", "b.service.d/readme", "c.service.d/.hidden.conf",  "d.mount.d/a.conf",
                "e.target", ".f.service",         "g.service.wants/h.service",
        };
        _cleanup_(unit_files_freep) UnitFiles *files = NULL;
        _cleanup_(temporary_done) Temporary tmp = {};

        temporary_init(&tmp);
        for (size_t i = 0; i < ELEMENTSOF(with); i++)
                temporary_write(&tmp, with[i], "[Unit]\n" SECTION);
        for (size_t i = 0; i < ELEMENTSOF(without); i++)
                temporary_write(&tmp, without[i], SECTION);
        temporary_write(&tmp, "plain.service", "[Service]\nExecStart=/bin/tlob\n");
        temporary_write(&tmp, "nearly.service", "[Service]\nExecStart=/bin/x\n  [x-tlobd f]\n");
        assert_ok(unit_files_new(&files));
        look(files, tmp.path);

        /* The template's own file and its drop-in are for the same. */
        assert_int_equal(count(files), 7);
        assert_true(unit_files_match(files, "nearly.service"));
        assert_true(unit_files_match(files, "one.service"));
        assert_true(unit_files_match(files, "many@x.service"));
        assert_true(unit_files_match(files, "many@anything.service"));
        assert_true(unit_files_match(files, "pre-a.service"));
        assert_true(unit_files_match(files, "pre-a-b@c.service"));
        assert_true(unit_files_match(files, "any.slice"));
        assert_true(unit_files_match(files, "s.scope"));

        assert_false(unit_files_match(files, "many@.service"));
        assert_false(unit_files_match(files, "pre.service"));
        assert_false(unit_files_match(files, "pre-.scope"));
        assert_false(unit_files_match(files, "plain.service"));
        assert_false(unit_files_match(files, "h.service"));
        assert_false(unit_files_match(files, "other.scope"));
}

static void test_types_of_files(void **state) {
        _cleanup_(unit_files_freep) UnitFiles *files = NULL;
        _cleanup_(temporary_done) Temporary tmp = {};
        char target[600];

        temporary_init(&tmp);
        temporary_write(&tmp, "real.service", SECTION);
        temporary_write(&tmp, "elsewhere/x.conf", SECTION);
        temporary_write(&tmp, "directory.service/x", SECTION);
        (void) snprintf(target, sizeof(target), "%s/elsewhere", tmp.path);
        assert_ok(symlink(target, temporary_path(&tmp, "linked.service.d")));
        assert_ok(symlink("real.service", temporary_path(&tmp, "alias.service")));
        assert_ok(symlink("/dev/null", temporary_path(&tmp, "masked.service")));
        assert_ok(symlink("nowhere", temporary_path(&tmp, "broken.service")));
        assert_ok(mkfifo(temporary_path(&tmp, "pipe.service"), 0600));

        assert_ok(unit_files_new(&files));
        look(files, tmp.path);
        assert_int_equal(count(files), 3);
        assert_true(unit_files_match(files, "real.service"));
        assert_true(unit_files_match(files, "alias.service"));
        assert_true(unit_files_match(files, "linked.service"));
}

/* How many files below the directory are opened by a look. */
static unsigned count_opened(UnitFiles *files, const char *directory) {
        _cleanup_close_ int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        _Alignas(struct inotify_event) char buf[4096];
        unsigned n = 0;
        ssize_t size;

        assert_true(fd >= 0);
        assert_true(inotify_add_watch(fd, directory, IN_OPEN) >= 0);
        look(files, directory);
        while ((size = read(fd, buf, sizeof(buf))) > 0)
                for (const char *p = buf; p < buf + size;) {
                        const struct inotify_event *event = (const struct inotify_event *) p;

                        n += event->len > 0;
                        p += sizeof(*event) + event->len;
                }
        return n;
}

static void test_second_look(void **state) {
        _cleanup_(unit_files_freep) UnitFiles *files = NULL;
        _cleanup_(temporary_done) Temporary tmp = {};

        temporary_init(&tmp);
        temporary_write(&tmp, "a.service", "[Service]\n");
        temporary_write(&tmp, "b.service", SECTION);
        assert_ok(unit_files_new(&files));
        assert_int_equal(count_opened(files, tmp.path), 2);
        assert_int_equal(count(files), 1);
        assert_int_equal(count_opened(files, tmp.path), 0);
        assert_int_equal(count(files), 1);

        temporary_write(&tmp, "a.service", "[Service]\n" SECTION);
        assert_int_equal(count_opened(files, tmp.path), 1);
        assert_int_equal(count(files), 2);
        assert_ok(unlink(temporary_path(&tmp, "b.service")));
        assert_int_equal(count_opened(files, tmp.path), 0);
        assert_int_equal(count(files), 1);
        assert_false(unit_files_match(files, "b.service"));
}

static void test_one_file(void **state) {
        _cleanup_(unit_files_freep) UnitFiles *files = NULL;
        _cleanup_(temporary_done) Temporary tmp = {};

        temporary_init(&tmp);
        temporary_write(&tmp, "with", SECTION);
        temporary_write(&tmp, "without", "[Service]\n");
        assert_ok(unit_files_new(&files));
        assert_true(unit_files_has_sections(files, temporary_path(&tmp, "with")));
        assert_false(unit_files_has_sections(files, temporary_path(&tmp, "without")));
        assert_false(unit_files_has_sections(files, temporary_path(&tmp, "gone")));
        assert_false(unit_files_has_sections(files, tmp.path));
        temporary_write(&tmp, "without", SECTION);
        assert_true(unit_files_has_sections(files, temporary_path(&tmp, "without")));
}

/* So many descriptors are left, of at most as many as before. */
static void leave_descriptors(unsigned n, struct rlimit *ret_before) {
        int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
        struct rlimit limit;

        assert_true(fd >= 0);
        (void) close(fd);
        assert_ok(getrlimit(RLIMIT_NOFILE, ret_before));
        limit = *ret_before;
        limit.rlim_cur = (rlim_t) fd + n;
        assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
}

/* What cannot be read for want of descriptors has what it had, or may have something. */
static void test_without_descriptors(void **state) {
        unsigned n_failed = 0, n_looked = 0;

        for (unsigned n = 0; n < 6; n++) {
                _cleanup_(unit_files_freep) UnitFiles *files = NULL;
                _cleanup_(temporary_done) Temporary tmp = {};
                const char *const directories[] = { tmp.path, NULL };
                struct rlimit before;
                int r;

                temporary_init(&tmp);
                temporary_write(&tmp, "a.service", SECTION);
                temporary_write(&tmp, "b.service.d/a.conf", SECTION);
                assert_ok(unit_files_new(&files));
                look(files, tmp.path);
                temporary_write(&tmp, "a.service", SECTION "BudgetSec=1s\n");
                assert_ok(unit_files_begin(files, directories));
                leave_descriptors(n, &before);
                while ((r = unit_files_step(files, 1)) > 0)
                        ;
                assert_true(unit_files_has_sections(files, temporary_path(&tmp, "a.service")));
                assert_ok(setrlimit(RLIMIT_NOFILE, &before));
                assert_true(r == 0 || r == -EMFILE);
                n_failed += r < 0;
                n_looked += r == 0;
                assert_true(unit_files_match(files, "a.service"));
                assert_true(unit_files_match(files, "b.service"));
                temporary_write(&tmp, "a.service", "[Service]\n");
                look(files, tmp.path);
                assert_false(unit_files_has_sections(files, temporary_path(&tmp, "a.service")));
        }
        assert_true(n_failed > 0 && n_looked > 0);
}

/* A look that is begun anew, and a thousand files. */
static void test_many(void **state) {
        _cleanup_(unit_files_freep) UnitFiles *files = NULL;
        _cleanup_(temporary_done) Temporary tmp = {};
        const char *const directories[] = { tmp.path, NULL };

        temporary_init(&tmp);
        for (unsigned i = 0; i < 1000; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "u%u.service", i);
                temporary_write(&tmp, name, i % 10 == 0 ? SECTION : "[Service]\n");
        }
        assert_ok(unit_files_new(&files));
        assert_ok(unit_files_begin(files, directories));
        assert_int_equal(unit_files_step(files, 100), 1);
        assert_int_equal(count(files), 0);
        look(files, tmp.path);
        assert_int_equal(count(files), 100);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_types_of_files),
                cmocka_unit_test(test_second_look),
                cmocka_unit_test(test_one_file),
                cmocka_unit_test(test_without_descriptors),
                cmocka_unit_test(test_many),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
