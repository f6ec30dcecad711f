/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How many threads may run what the monitor measures: counted, and what follows when there are too
 * many.
 */

#include <fcntl.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "kernel/census.h"
#include "kernel/context.h"
#include "kernel/threads.h"
#include "test.h"
#include "tracefs.h"

#define CROWD (KERNEL_SLOTS + 6)

static const char *const marks[] = { "Start", "target_one", "Stop", "target_two" };

static KernelFile file_of(const char *path) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        KernelFile file;
        unsigned links;

        assert_ok(elf_file_open(path, &elf, NULL));
        assert_ok(kernel_file_stat(elf_file_fd(elf), "", &file, &links));
        file.is_program = elf_file_is_program(elf);
        return file;
}

static void start_crowd(pid_t crowd[static CROWD]) {
        for (size_t i = 0; i < CROWD; i++)
                crowd[i] = tracefs_start_program(tracefs_target());
}

static void stop_crowd(const pid_t crowd[static CROWD]) {
        for (size_t i = 0; i < CROWD; i++)
                tracefs_stop_program(crowd[i]);
}

static int add(Tracefs *t, const char *file, const char *start, const char *stop, char **ret) {
        return tracefs_add(t,
                           (const char *[]) { "Executable", file, "Start", start, "Stop", stop,
                                              "BudgetSec", "5ms", NULL },
                           0, 0, ret);
}

static void test_count(void **state) {
        KernelFile files[] = { file_of(tracefs_target()), file_of("/proc/self/exe"), {} };
        unsigned each[ELEMENTSOF(files)], total;
        pid_t one, two;

        assert_true(files[0].is_program && files[1].is_program);
        assert_ok(kernel_threads_count(files, 2, UINT_MAX, each, &total, NULL));
        assert_int_equal(each[0], 0);
        assert_int_equal(each[1], 1); /* this test */
        one = tracefs_start_program(tracefs_target());
        two = tracefs_start_program(tracefs_target());
        assert_ok(kernel_threads_count(files, 2, UINT_MAX, each, &total, NULL));
        assert_int_equal(each[0], 2);
        assert_int_equal(each[1], 1);
        assert_int_equal(total, 3);

        /* They have the C library, too, or will have it in a moment, and count once. */
        files[2] = file_of("/lib/x86_64-linux-gnu/libc.so.6");
        assert_false(files[2].is_program);
        assert_ok(kernel_threads_count(files, 3, UINT_MAX, each, &total, NULL));
        assert_true(each[2] >= 1);
        assert_in_range(total, each[2], each[2] + 2);
        tracefs_stop_program(one);
        tracefs_stop_program(two);
        assert_ok(kernel_threads_count(files, 0, UINT_MAX, NULL, &total, NULL));
        assert_int_equal(total, 0);
        /* Enough is enough. */
        assert_ok(kernel_threads_count(&files[2], 1, 0, NULL, &total, NULL));
        assert_true(total > 0);
}

static void test_before(void **state) {
        _cleanup_free_ char *error = NULL;
        pid_t crowd[CROWD];
        Tracefs t;

        tracefs_begin(&t, "v3");
        start_crowd(crowd);
        assert_int_equal(add(&t, tracefs_target(), marks[1], marks[3], &error), -EOPNOTSUPP);
        assert_non_null(strstr(error, "more than that may run this code"));
        assert_int_equal(tracefs_count_lines(), 1);
        stop_crowd(crowd);
        tracefs_finish(&t);
}

/* All bindings share the slots, also with one that has threads enough by itself. */
static void test_together(void **state) {
        char copy[] = "/tmp/tlob-crowd-XXXXXX";
        _cleanup_free_ char *error = NULL;
        pid_t crowd[CROWD], more[CROWD];
        size_t n = CROWD / 2;
        Tracefs t;

        tracefs_copy_target(copy);
        tracefs_begin(&t, "v3");
        for (size_t i = 0; i < n; i++) {
                crowd[i] = tracefs_start_program(tracefs_target());
                more[i] = tracefs_start_program(copy);
        }
        (void) tracefs_add_marks(&t, "5ms");
        assert_int_equal(add(&t, copy, marks[1], marks[3], &error), -EOPNOTSUPP);
        assert_non_null(strstr(error, "of its bindings with this one"));
        assert_int_equal(tracefs_count_lines(), 2);
        for (size_t i = 0; i < n; i++) {
                tracefs_stop_program(crowd[i]);
                tracefs_stop_program(more[i]);
        }
        tracefs_finish(&t);
        assert_ok(unlink(copy));
}

/* Threads that begin later: the manager is advised, once, and the number is told. */
static void test_later(void **state) {
        pid_t crowd[CROWD];
        uint32_t index;
        Tracefs t;

        tracefs_begin(&t, "v3");
        index = (uint32_t) tracefs_add_marks(&t, "5ms");
        tracefs_collect(&t);
        start_crowd(crowd);
        tracefs_expect_notice(&t, "room for 64 threads, and 7", index);
        assert_true(t.notices[t.n_notices - 1].is_advice);
        tracefs_assert_told(&t, "threads at once that may run the code of its bindings, 64");

        /* It stays where it is, and is measured. */
        raise_violation(getpid(), "running", UINT64_C(5000000), 6000000, 0, 0);
        tracefs_wait(&t);
        assert_int_equal(t.n_reports, 1);
        tracefs_wait(&t);
        assert_int_equal(t.n_notices, 1);
        stop_crowd(crowd);
        tracefs_finish(&t);
}

/*
 * A process whose list of mappings does not answer: a FIFO over it, which is opened when somebody
 * writes.
 */
static void test_locked_memory(void **state) {
        const KernelFile library = file_of("/lib/x86_64-linux-gnu/libc.so.6");
        char fifo[32], maps[32], name[24];
        unsigned total;
        pid_t locked;
        Tracefs t;
        int fd, r;

        tracefs_begin(&t, "v3");
        locked = tracefs_start_program(tracefs_target());
        (void) snprintf(maps, sizeof(maps), "/proc/%i/maps", locked);
        (void) snprintf(name, sizeof(name), "process %i ", locked);
        (void) snprintf(fifo, sizeof(fifo), "/tmp/tlob-crowd-%i", locked);
        assert_ok(mkfifo(fifo, 0600));
        assert_ok(mount(fifo, maps, NULL, MS_BIND, NULL));

        /* At once, and while that lasts. */
        for (int i = 0; i < 3; i++) {
                _cleanup_free_ char *reason = NULL, *error = NULL;

                assert_int_equal(kernel_census(&library, 1, UINT_MAX, NULL, &total, &reason),
                                 -EOPNOTSUPP);
                assert_non_null(strstr(reason, name));
                assert_int_equal(add(&t, "libc.so.6", "qsort", "bsearch", &error), -EOPNOTSUPP);
                assert_non_null(strstr(error, name));
        }
        assert_int_equal(tracefs_count_lines(), 1);

        /* The count that waits has its answer, and later ones have theirs. */
        fd = open(fifo, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_ok(umount2(maps, MNT_DETACH));
        assert_ok(close(fd));
        do {
                (void) usleep(1000);
                r = kernel_census(&library, 1, UINT_MAX, NULL, &total, NULL);
        } while (r == -EOPNOTSUPP);
        assert_ok(r);
        assert_true(total >= 2);

        assert_ok(unlink(fifo));
        tracefs_stop_program(locked);
        tracefs_finish(&t);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_count),         cmocka_unit_test(test_before),
                cmocka_unit_test(test_together),      cmocka_unit_test(test_later),
                cmocka_unit_test(test_locked_memory),
        };

        cmocka_set_test_filter(getenv("TLOB_TEST_FILTER"));
        return cmocka_run_group_tests(tests, tracefs_setup_namespace, tracefs_teardown_namespace);
}
