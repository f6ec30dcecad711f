/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Questions about files, with readers that are really processes: what they answer is what is found
 * by reading in this process, and one that is stopped, or killed, stands for a file system that
 * hangs and a file that does harm.
 */

#include "file/files.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "binding/keys.h"
#include "binding/resolve.h"
#include "test.h"

#define TIMEOUT_USEC  UINT64_C(600000)
#define PATIENCE_USEC UINT64_C(30000000) /* where nothing is to be late */

#define IDS_MAX 4096

/* Several can be told at once. */
static bool told[IDS_MAX];

static void on_answer(unsigned id, void *userdata) {
        assert_true(id < IDS_MAX);
        told[id] = true;
}

static Binding *make(const char *executable, const char *function) {
        Binding *binding;

        assert_ok(binding_new("x", &binding));
        assert_ok(binding_set_key(binding, "Executable", executable, NULL));
        assert_ok(binding_set_key(binding, "Function", function, NULL));
        assert_ok(binding_set_key(binding, "BudgetSec", "1s", NULL));
        return binding;
}

static int setup(void **state) {
        return files_new(TIMEOUT_USEC, (Files **) state);
}

static int setup_patient(void **state) {
        return files_new(PATIENCE_USEC, (Files **) state);
}

static int teardown(void **state) {
        files_free(*state);
        return 0;
}

/* Waits for what is told. */
static void wait_for(Files *files, unsigned id) {
        struct pollfd poll_fd = { .fd = files_get_fd(files), .events = POLLIN };

        told[id] = false;
        while (!told[id]) {
                assert_int_equal(poll(&poll_fd, 1, 10000), 1);
                assert_true(files_dispatch(files, on_answer, NULL) >= 0);
        }
}

/* As files_resolve(), also if the answer does not come at once. */
static int resolve(Files *files, Binding *binding, BindingFile **ret_file, char **ret_error) {
        _cleanup_free_ char *error = NULL;
        unsigned id;
        int r;

        while ((r = files_resolve(files, binding, &id, ret_file, &error)) == -EINPROGRESS) {
                wait_for(files, id);
                free(error);
                error = NULL;
        }
        if (ret_error)
                *ret_error = TAKE_PTR(error);
        return r;
}

/* The same of files_compare(). */
static int compare(Files *files, const Binding *binding, FileStamp *ret_now) {
        unsigned id;
        int r;

        while ((r = files_compare(files, binding, &id, ret_now)) == -EINPROGRESS)
                wait_for(files, id);
        return r;
}

/* All readers: the children of the process that is the only child of this one. */
static void signal_readers(int number) {
        char path[64];
        unsigned child, reader;
        FILE *f;

        (void) snprintf(path, sizeof(path), "/proc/self/task/%i/children", getpid());
        f = fopen(path, "re");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%u", &child), 1);
        (void) fclose(f);
        (void) snprintf(path, sizeof(path), "/proc/%u/task/%u/children", child, child);
        f = fopen(path, "re");
        assert_non_null(f);
        while (fscanf(f, "%u", &reader) == 1)
                assert_ok(kill((pid_t) reader, number));
        (void) fclose(f);
}

static void assert_same_site(const ElfSite *a, const ElfSite *b) {
        assert_int_equal(a->offset, b->offset);
        assert_string_equal(a->function ?: "", b->function ?: "");
}

static void assert_same_stop(const Binding *a, const Binding *b) {
        assert_int_equal(a->resolved.sites.how, TLOB_STOP_EXITS);
        assert_int_equal(b->resolved.sites.how, TLOB_STOP_EXITS);
        assert_int_equal(a->resolved.sites.has_frame, b->resolved.sites.has_frame);
        assert_int_equal(a->resolved.sites.exits.n, b->resolved.sites.exits.n);
        assert_int_equal(a->resolved.sites.exits.n_returns, b->resolved.sites.exits.n_returns);
        assert_memory_equal(a->resolved.sites.exits.offsets, b->resolved.sites.exits.offsets,
                            a->resolved.sites.exits.n * sizeof(*a->resolved.sites.exits.offsets));
        assert_string_equal(a->resolved.sites.exits.successor ?: "",
                            b->resolved.sites.exits.successor ?: "");
        assert_string_equal(a->resolved.sites.exits.several ?: "",
                            b->resolved.sites.exits.several ?: "");
}

static void test_as_if_read_here(void **state) {
        static const char *const functions[] = { "fsync", "close", "qsort", "no_such_function" };

        for (size_t i = 0; i < ELEMENTSOF(functions); i++) {
                _cleanup_(binding_freep) Binding *here = make("libc.so.6", functions[i]);
                _cleanup_(binding_freep) Binding *there = make("libc.so.6", functions[i]);
                _cleanup_(binding_file_freep) BindingFile *a = NULL, *b = NULL;
                _cleanup_free_ char *error_here = NULL, *error_there = NULL;
                FileStamp now;
                struct stat st;
                int r;

                r = binding_resolve(here, &a, &error_here);
                assert_int_equal(resolve(*state, there, &b, &error_there), r);
                assert_string_equal(error_here ?: "", error_there ?: "");
                if (r < 0)
                        continue;
                assert_string_equal(here->resolved.path, there->resolved.path);
                assert_string_equal(here->resolved.build_id ?: "", there->resolved.build_id ?: "");
                assert_same_site(&here->resolved.sites.start, &there->resolved.sites.start);
                assert_same_site(&here->resolved.sites.stop, &there->resolved.sites.stop);
                assert_int_equal(a->is_program, b->is_program);
                assert_same_stop(here, there);
                assert_true(here->resolved.start_kind != PROBE_UNKNOWN &&
                            here->resolved.stop_kind != PROBE_UNKNOWN);
                assert_int_equal(here->resolved.start_kind, there->resolved.start_kind);
                assert_int_equal(here->resolved.stop_kind, there->resolved.stop_kind);
                assert_ok(fstat(b->fd, &st));
                assert_int_equal(st.st_ino, there->resolved.inode);
                assert_int_equal(st.st_ino, here->resolved.inode);
                assert_int_equal(st.st_dev, there->resolved.device);
                assert_int_equal(fcntl(b->fd, F_GETFL) & O_ACCMODE, O_RDONLY);
                assert_int_equal(compare(*state, there, &now), FILE_IS_SAME);
                there->resolved.inode++;
                assert_int_equal(compare(*state, there, &now), FILE_IS_OTHER);
        }
        assert_false(files_is_busy(*state));
}

/* What is compared is more than which file it is. */
static void test_compare(void **state) {
        char path[] = "/tmp/tlob-files-XXXXXX";
        _cleanup_close_ int fd = mkostemp(path, O_CLOEXEC);
        _cleanup_(binding_freep) Binding *binding = make(path, "main");
        FileStamp now;
        struct stat st;

        assert_true(fd >= 0);
        assert_ok(fstat(fd, &st));
        binding->resolved.path = strdup(path);
        binding->resolved.inner_path = strdup(path);
        binding->resolved.device = st.st_dev;
        binding->resolved.inode = st.st_ino;
        binding->resolved.stamp = file_stamp_of(fd, &st);
        assert_int_equal(compare(*state, binding, &now), FILE_IS_SAME);
        binding->resolved.stamp.ctime_ns--;
        assert_int_equal(compare(*state, binding, &now), FILE_IS_TOUCHED);
        binding->resolved.stamp.mtime_ns--;
        assert_int_equal(compare(*state, binding, &now), FILE_IS_REWRITTEN);
        binding->resolved.stamp = now;
        assert_int_equal(compare(*state, binding, &now), FILE_IS_SAME);
        assert_int_equal(write(fd, "x", 1), 1);
        assert_int_equal(compare(*state, binding, &now), FILE_IS_REWRITTEN);
        assert_ok(unlink(path));
        assert_int_equal(compare(*state, binding, &now), FILE_IS_OTHER);
}

/* It is not waited for, and the answer is that of the moment. */
static void test_count(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("libc.so.6", "fsync");
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        FileUsers users;
        unsigned id;

        assert_ok(resolve(*state, binding, &file, NULL));
        assert_int_equal(files_count(*state, binding, &id, &users), -EINPROGRESS);
        /* Nothing that is measured waits for it. */
        assert_true(files_is_busy(*state));
        assert_false(files_is_setting_up(*state));
        wait_for(*state, id);
        assert_ok(files_count(*state, binding, &id, &users));
        /* This one, at least. */
        assert_true(users.n_processes > 0);
        assert_int_equal(users.n_outside, users.n_processes);

        binding->resolved.mapped.inode = 1;
        assert_ok(free_and_strdup(&binding->resolved.inner_path, "/no/such/library"));
        assert_int_equal(files_count(*state, binding, &id, &users), -EINPROGRESS);
        wait_for(*state, id);
        assert_ok(files_count(*state, binding, &id, &users));
        assert_int_equal(users.n_processes, 0);
}

static void test_answered_late(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("libc.so.6", "fsync");
        _cleanup_(binding_freep) Binding *other = make("libc.so.6", "fdatasync");
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_free_ char *error = NULL;
        unsigned id = 0, same = 0;

        assert_ok(resolve(*state, binding, &file, NULL));
        file = binding_file_free(file);
        signal_readers(SIGSTOP);
        assert_int_equal(files_resolve(*state, binding, &id, &file, &error), -EINPROGRESS);
        assert_true(id > 0);
        assert_non_null(strstr(error, "libc.so.6 is being read"));
        assert_int_equal(files_resolve(*state, binding, &same, &file, NULL), -EINPROGRESS);
        assert_int_equal(same, id);
        assert_true(files_is_busy(*state));
        assert_true(files_is_setting_up(*state));

        wait_for(*state, id);
        free(error);
        error = NULL;
        assert_int_equal(files_resolve(*state, binding, &same, &file, &error), -ETIMEDOUT);
        assert_string_equal(error, "libc.so.6 could not be read within 600ms: its file system does "
                                   "not answer, or the machine is busy");
        assert_int_equal(same, id);
        free(error);
        error = NULL;
        assert_int_equal(files_resolve(*state, other, &same, &file, &error), -ETIMEDOUT);
        assert_string_equal(
                error, "libc.so.6 waits for another file on its file system, which "
                       "could not be read within 600ms: the file system does not answer, or the "
                       "machine is busy");
        assert_false(files_is_busy(*state));
        assert_true(files_are_late(*state));

        signal_readers(SIGCONT);
        wait_for(*state, id);
        assert_false(files_are_late(*state));
        assert_ok(resolve(*state, binding, &file, NULL));
}

/* How many descriptors of this process are of the file of that one. */
static unsigned count_open(int fd) {
        struct stat st, other;
        unsigned n = 0;

        assert_ok(fstat(fd, &st));
        for (int i = 0; i < 256; i++)
                n += fstat(i, &other) >= 0 && stat_is_of_same_file(&st, &other);
        return n;
}

/* What nobody comes back for is closed, though nothing is asked any more: it may be in an image. */
static void test_never_claimed(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("libc.so.6", "fsync");
        _cleanup_(binding_file_freep) BindingFile *file = NULL, *none = NULL;
        struct pollfd poll_fd = { .fd = files_get_fd(*state), .events = POLLIN };
        unsigned id = 0;

        assert_ok(resolve(*state, binding, &file, NULL));
        assert_int_equal(count_open(file->fd), 1);
        signal_readers(SIGSTOP);
        assert_int_equal(files_resolve(*state, binding, &id, &none, NULL), -EINPROGRESS);
        signal_readers(SIGCONT);
        wait_for(*state, id);
        assert_int_equal(count_open(file->fd), 2);
        while (count_open(file->fd) > 1) {
                assert_int_equal(poll(&poll_fd, 1, 30000), 1);
                assert_true(files_dispatch(*state, on_answer, NULL) >= 0);
        }
}

typedef struct Busy {
        Files *files;
        Binding *next;
        unsigned id;
} Busy;

/* Asks for another file, and has something else to do until that is answered, and for longer. */
static void on_answer_be_busy(unsigned id, void *userdata) {
        const struct timespec ts = { .tv_sec = 1 };
        BindingFile *file = NULL;
        Busy *busy = userdata;

        on_answer(id, NULL);
        if (busy->id > 0)
                return;
        signal_readers(SIGSTOP);
        assert_int_equal(files_resolve(busy->files, busy->next, &busy->id, &file, NULL),
                         -EINPROGRESS);
        signal_readers(SIGCONT);
        (void) nanosleep(&ts, NULL);
}

/* That is not the fault of the file. */
static void test_told_late(void **state) {
        _cleanup_(binding_freep) Binding *first = make("libc.so.6", "fsync");
        _cleanup_(binding_freep) Binding *second = make("libc.so.6", "fdatasync");
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        Busy busy = { .files = *state, .next = second };
        struct pollfd poll_fd = { .fd = files_get_fd(*state), .events = POLLIN };
        unsigned id;

        assert_ok(resolve(*state, first, &file, NULL));
        file = binding_file_free(file);
        signal_readers(SIGSTOP);
        assert_int_equal(files_resolve(*state, first, &id, &file, NULL), -EINPROGRESS);
        signal_readers(SIGCONT);
        memset(told, 0, sizeof(told));
        while (busy.id == 0 || !told[busy.id]) {
                assert_int_equal(poll(&poll_fd, 1, 10000), 1);
                assert_true(files_dispatch(*state, on_answer_be_busy, &busy) >= 0);
        }
        assert_ok(resolve(*state, second, &file, NULL));
}

/* As long as one waits for a place, others do not begin to; elsewhere all goes on. */
static void test_place_that_hangs(void **state) {
        _cleanup_(binding_freep) Binding *first = make("/usr/bin/env", "main");
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        struct timespec before, after;
        unsigned id, n = 0;
        FileStamp now;

        assert_int_equal(compare(*state, first, &now), FILE_IS_OTHER);
        assert_true(resolve(*state, first, &file, NULL) < 0);
        signal_readers(SIGSTOP);
        assert_int_equal(files_resolve(*state, first, &id, &file, NULL), -EINPROGRESS);
        (void) clock_gettime(CLOCK_MONOTONIC, &before);
        for (unsigned i = 0; i < 1000; i++) {
                char name[32];
                _cleanup_(binding_freep) Binding *binding = NULL;

                (void) snprintf(name, sizeof(name), "function_%u", i);
                binding = make("/usr/bin/env", name);
                n += files_resolve(*state, binding, &id, &file, NULL) == -EINPROGRESS;
        }
        (void) clock_gettime(CLOCK_MONOTONIC, &after);
        assert_int_equal(n, 1000);
        /* If each waited, it would be five minutes. */
        assert_true(after.tv_sec - before.tv_sec < 30);

        {
                _cleanup_(binding_freep) Binding *elsewhere = make("libc.so.6", "fsync");

                assert_ok(resolve(*state, elsewhere, &file, NULL));
        }
        signal_readers(SIGCONT);
}

static void assert_resolved(Files *files, Binding *binding, const char *function) {
        _cleanup_(binding_freep) Binding *here = make("libc.so.6", function);
        _cleanup_(binding_file_freep) BindingFile *file = NULL, *other = NULL;

        assert_ok(resolve(files, binding, &file, NULL));
        assert_ok(binding_resolve(here, &other, NULL));
        assert_same_site(&binding->resolved.sites.start, &here->resolved.sites.start);
}

/* Whoever is asked about it does not answer; there is a reader, which has nothing else to do. */
static void hang(Files *files, Binding *binding) {
        const struct timespec while_slow = { .tv_nsec = 300000000 };
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        unsigned id;

        signal_readers(SIGSTOP);
        assert_int_equal(files_resolve(files, binding, &id, &file, NULL), -EINPROGRESS);
        (void) nanosleep(&while_slow, NULL);
}

/* A path there is no path of the machine, whatever its text. */
static void test_container_that_hangs(void **state) {
        _cleanup_(binding_freep) Binding *inside = make("libc.so.6", "fsync"),
                                         *outside = make("libc.so.6", "fsync");

        assert_ok(binding_set_key(inside, "Unit", "libpod-0.scope", NULL));
        assert_resolved(*state, outside, "fsync");
        hang(*state, inside);
        assert_resolved(*state, outside, "fsync");
        signal_readers(SIGCONT);
}

/* Its processes are looked at, too: what they keep waiting is no matter of the directory. */
static void test_unit_that_hangs(void **state) {
        _cleanup_(binding_freep) Binding *hangs = make("libc.so.6", "fsync"),
                                         *other = make("libc.so.6", "fsync"),
                                         *outside = make("libc.so.6", "fsync");

        assert_ok(binding_set_key(hangs, "Unit", "hangs.service", NULL));
        assert_ok(binding_set_key(other, "Unit", "other.service", NULL));
        assert_resolved(*state, outside, "fsync");
        hang(*state, hangs);
        assert_resolved(*state, outside, "fsync");
        assert_resolved(*state, other, "fsync");
        signal_readers(SIGCONT);
}

/* A file system that hangs costs two readers, however many units have their files there. */
static void test_files_of_units_that_hang(void **state) {
        Binding *units[] = { make("/usr/bin/env", "main"), make("/usr/bin/env", "main"),
                             make("/usr/bin/env", "main") };
        _cleanup_(binding_freep) Binding *elsewhere = make("libc.so.6", "fsync");
        const struct timespec while_slow = { .tv_nsec = 300000000 };
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        unsigned id;

        assert_ok(binding_set_key(elsewhere, "Unit", "elsewhere.service", NULL));
        for (size_t i = 0; i < ELEMENTSOF(units); i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "u%zu.service", i);
                assert_ok(binding_set_key(units[i], "Unit", name, NULL));
                /* There is a reader that has nothing to do, and answers but for the first two. */
                assert_resolved(*state, elsewhere, "fsync");
                if (i < 2)
                        signal_readers(SIGSTOP);
                assert_int_equal(files_resolve(*state, units[i], &id, &file, NULL), -EINPROGRESS);
                (void) nanosleep(&while_slow, NULL);
        }
        assert_resolved(*state, elsewhere, "fsync");
        signal_readers(SIGCONT);
        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                binding_free(units[i]);
}

typedef struct Two {
        Files *files;
        Binding *second;
        bool was_taken;
        unsigned last_id;
} Two;

/* The first who is told asks what another one waits for. */
static void on_answer_of_two(unsigned id, void *userdata) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        Two *two = userdata;
        unsigned again;

        two->last_id = id;
        if (two->was_taken)
                return;
        assert_ok(files_resolve(two->files, two->second, &again, &file, NULL));
        two->was_taken = true;
}

/* Two wait for the same answer: who has not taken it when it comes is told nevertheless. */
static void test_asked_by_two(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("libc.so.6", "fsync"),
                                         *other = make("libc.so.6", "close");
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        Two two = { .files = *state, .second = binding };
        struct epoll_event events[2];
        unsigned id;

        /* Two readers, and each has one to answer. */
        assert_ok(binding_set_key(other, "Unit", "libpod-0.scope", NULL));
        assert_resolved(*state, binding, "fsync");
        signal_readers(SIGSTOP);
        assert_int_equal(files_resolve(*state, other, &id, &file, NULL), -EINPROGRESS);
        assert_resolved(*state, binding, "fsync");
        signal_readers(SIGSTOP);
        assert_int_equal(files_resolve(*state, binding, &id, &file, NULL), -EINPROGRESS);
        signal_readers(SIGCONT);
        while (epoll_wait(files_get_fd(*state), events, ELEMENTSOF(events), 10000) == 1)
                (void) nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
        assert_int_equal(files_dispatch(*state, on_answer_of_two, &two), 2);
        assert_true(two.was_taken);
        assert_int_equal(two.last_id, id);
}

static void test_reader_that_dies(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("libc.so.6", "fsync");
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_free_ char *error = NULL;
        unsigned id;

        assert_ok(resolve(*state, binding, &file, NULL));
        file = binding_file_free(file);
        signal_readers(SIGSTOP);
        assert_int_equal(files_resolve(*state, binding, &id, &file, NULL), -EINPROGRESS);
        signal_readers(SIGKILL);
        wait_for(*state, id);
        assert_int_equal(files_resolve(*state, binding, &id, &file, &error), -EIO);
        assert_non_null(strstr(error, "The process that was reading libc.so.6 died"));
        assert_ok(resolve(*state, binding, &file, NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_as_if_read_here, setup_patient, teardown),
                cmocka_unit_test_setup_teardown(test_compare, setup_patient, teardown),
                cmocka_unit_test_setup_teardown(test_count, setup_patient, teardown),
                cmocka_unit_test_setup_teardown(test_answered_late, setup, teardown),
                cmocka_unit_test_setup_teardown(test_never_claimed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_told_late, setup, teardown),
                cmocka_unit_test_setup_teardown(test_place_that_hangs, setup_patient, teardown),
                cmocka_unit_test_setup_teardown(test_container_that_hangs, setup_patient, teardown),
                cmocka_unit_test_setup_teardown(test_unit_that_hangs, setup_patient, teardown),
                cmocka_unit_test_setup_teardown(test_files_of_units_that_hang, setup_patient,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_asked_by_two, setup_patient, teardown),
                cmocka_unit_test_setup_teardown(test_reader_that_dies, setup_patient, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
