/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What becomes of bindings whose file is written, replaced or only touched: here, real copies of a
 * real program.
 */

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>

#include "fake-backend.h"
#include "fixture.h"
#include "test.h"
#include "tlob-bus.h"

#define PATIENCE_SEC 20

typedef struct Program {
        char path[80], other[80];
} Program;

static void copy(const char *path, int flags) {
        _cleanup_close_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        _cleanup_close_ int to = open(path, O_WRONLY | O_CLOEXEC | flags, 0755);
        struct stat st;

        assert_true(from >= 0 && to >= 0);
        assert_ok(fstat(from, &st));
        for (off_t rest = st.st_size; rest > 0;) {
                ssize_t n = sendfile(to, from, NULL, (size_t) rest);

                assert_true(n > 0);
                rest -= n;
        }
}

static void reload(Fixture *f) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        (void) fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Reload", &error, NULL,
                            NULL);
}

/* A binding on a copy of this program. */
static Program begin(Fixture *f) {
        char text[256];
        Program p;

        (void) snprintf(p.path, sizeof(p.path), "%s/program", f->directory);
        (void) snprintf(p.other, sizeof(p.other), "%s/other", f->directory);
        copy(p.path, O_CREAT);
        (void) snprintf(text, sizeof(text),
                        "[Binding b]\nExecutable=%s\nFunction=main\nBudgetSec=1s\n", p.path);
        fixture_write(f, 0, "bindings.d/b.conf", text);
        reload(f);
        return p;
}

static const Binding *get(const Fixture *f) {
        const Binding *binding = binding_table_get(manager_bindings(f->manager), "b");

        assert_non_null(binding);
        return binding;
}

static ino_t inode_of(const char *path) {
        struct stat st;

        assert_ok(stat(path, &st));
        return st.st_ino;
}

static void turn_until(Fixture *f, BindingState state, ino_t inode) {
        time_t end = time(NULL) + PATIENCE_SEC;

        while (get(f)->measurement.state != state || (inode && get(f)->resolved.inode != inode)) {
                assert_true(time(NULL) < end);
                assert_true(sd_event_run(manager_get_event(f->manager), 100000) >= 0);
        }
}

/* All that was due has been looked at. */
static void turn_until_quiet(Fixture *f) {
        do
                assert_true(sd_event_run(manager_get_event(f->manager), 1500000) >= 0);
        while (get(f)->watch.due_usec > 0);
}

static void test_written_in_place(void **state) {
        Fixture *f = *state;
        Program p = begin(f);
        unsigned removed = fake_calls()->remove, added = fake_calls()->add;
        _cleanup_close_ int fd = -EBADF;

        assert_int_equal(get(f)->measurement.state, BINDING_ACTIVE);
        fd = open(p.path, O_WRONLY | O_CLOEXEC | O_TRUNC);
        assert_true(fd >= 0);
        assert_true(sd_event_run(manager_get_event(f->manager), 0) >= 0);
        assert_int_equal(fake_calls()->remove, removed + 1);
        assert_int_equal(get(f)->measurement.state, BINDING_WAITING);
        assert_non_null(strstr(get(f)->measurement.reason, "was written to"));
        /* Nobody else sets them meanwhile. */
        reload(f);
        assert_int_equal(fake_calls()->add, added);
        copy(p.path, 0);
        fd = safe_close(fd);
        turn_until(f, BINDING_ACTIVE, 0);
        assert_int_equal(fake_calls()->add, added + 1);
}

/* Whatever the machine had too little of may be there again. */
static void test_probes_that_cannot_be_set_yet(void **state) {
        Fixture *f = *state;

        fake_fail_add(-EBUSY, "Too many probes are being set");
        (void) begin(f);
        assert_int_equal(get(f)->measurement.state, BINDING_FAILED);
        assert_non_null(strstr(get(f)->measurement.reason, "Too many probes"));
        fake_fail_add(0, NULL);
        turn_until(f, BINDING_ACTIVE, 0);
}

/* What is for good is not tried all the time. */
static void test_probes_that_cannot_be_set(void **state) {
        Fixture *f = *state;

        fake_fail_add(-EACCES, "The kernel refuses its probes");
        (void) begin(f);
        assert_int_equal(get(f)->measurement.state, BINDING_FAILED);
        assert_int_equal(get(f)->watch.due_usec, 0);
        fake_fail_add(0, NULL);
}

static void test_written_to_what_is_no_program(void **state) {
        Fixture *f = *state;
        Program p = begin(f);

        assert_ok(truncate(p.path, 10));
        turn_until(f, BINDING_FAILED, 0);
        assert_non_null(strstr(get(f)->measurement.reason, p.path));
        copy(p.path, O_TRUNC);
        turn_until(f, BINDING_ACTIVE, 0);
}

static void test_renamed_over(void **state) {
        Fixture *f = *state;
        Program p = begin(f);

        turn_until_quiet(f);
        copy(p.other, O_CREAT);
        assert_ok(rename(p.other, p.path));
        turn_until(f, BINDING_ACTIVE, inode_of(p.path));
}

static void test_removed_and_made_again(void **state) {
        Fixture *f = *state;
        Program p = begin(f);

        assert_ok(unlink(p.path));
        turn_until(f, BINDING_FAILED, 0);
        copy(p.path, O_CREAT);
        turn_until(f, BINDING_ACTIVE, inode_of(p.path));
}

static void test_a_touch_changes_nothing(void **state) {
        Fixture *f = *state;
        Program p = begin(f);
        unsigned removed = fake_calls()->remove;

        turn_until_quiet(f);
        assert_ok(chmod(p.path, 0700));
        turn_until_quiet(f);
        assert_ok(link(p.path, p.other));
        reload(f);
        turn_until_quiet(f);
        reload(f);
        assert_int_equal(get(f)->measurement.state, BINDING_ACTIVE);
        assert_int_equal(fake_calls()->remove, removed);
}

/* It is looked at, but not all the time. */
static void test_written_all_the_time(void **state) {
        Fixture *f = *state;
        Program p = begin(f);
        unsigned added = fake_calls()->add;
        time_t end = time(NULL) + 4;

        while (time(NULL) < end) {
                copy(p.path, O_TRUNC);
                assert_true(sd_event_run(manager_get_event(f->manager), 1000) >= 0);
        }
        assert_true(fake_calls()->add <= added + 5);
        turn_until(f, BINDING_ACTIVE, 0);
}

/* A file system that tells nothing: what inotify had to say is not heard. */
static void test_compared_at_reload(void **state) {
        Fixture *f = *state;
        Program p = begin(f);
        unsigned removed = fake_calls()->remove;
        ino_t inode;

        assert_true(sd_event_source_set_enabled(manager_get_watch(f->manager), SD_EVENT_OFF) >= 0);
        copy(p.path, O_TRUNC);
        reload(f);
        assert_int_equal(fake_calls()->remove, removed + 1);
        turn_until(f, BINDING_ACTIVE, 0);

        copy(p.other, O_CREAT);
        inode = inode_of(p.other);
        assert_ok(rename(p.other, p.path));
        reload(f);
        assert_int_equal(get(f)->measurement.state, BINDING_ACTIVE);
        assert_int_equal(get(f)->resolved.inode, inode);
}

/* Between the reading of a file and the watch on it. */
static void test_written_before_it_was_watched(void **state) {
        Fixture *f = *state;
        Program p = begin(f);
        unsigned added = fake_calls()->add;
        time_t end = time(NULL) + PATIENCE_SEC;

        assert_true(sd_event_source_set_enabled(manager_get_watch(f->manager), SD_EVENT_OFF) >= 0);
        copy(p.path, O_TRUNC);
        while (fake_calls()->add == added) {
                assert_true(time(NULL) < end);
                assert_true(sd_event_run(manager_get_event(f->manager), 100000) >= 0);
        }
        assert_int_equal(get(f)->measurement.state, BINDING_ACTIVE);
}

/*
 * The place of a probe that is still on its way out is not used again: not even by another binding.
 */
static void test_added_while_probes_leave(void **state) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = *state;
        Program p = begin(f);
        unsigned added = fake_calls()->add;
        time_t end = time(NULL) + PATIENCE_SEC;
        const Binding *other;

        copy(p.path, O_TRUNC);
        assert_true(sd_event_run(manager_get_event(f->manager), 0) >= 0);
        fake_remove_slowly(true);
        assert_ok(fixture_call(f, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &error,
                               NULL, "sa{sv}t", "c", 3, "Executable", "s", p.path, "Function", "s",
                               "main", "BudgetSec", "s", "5ms", UINT64_C(0)));
        other = binding_table_get(manager_bindings(f->manager), "c");
        assert_int_equal(other->measurement.state, BINDING_WAITING);
        for (unsigned i = 0; i < 10; i++)
                assert_true(sd_event_run(manager_get_event(f->manager), 200000) >= 0);
        assert_int_equal(fake_calls()->add, added);
        fake_remove_slowly(false);
        while (other->measurement.state != BINDING_ACTIVE ||
               get(f)->measurement.state != BINDING_ACTIVE) {
                assert_true(time(NULL) < end);
                assert_true(sd_event_run(manager_get_event(f->manager), 100000) >= 0);
        }
        assert_int_equal(fake_calls()->add, added + 2);
}

/* One does not hear of the other's end. */
static void test_two_on_a_file(void **state) {
        _cleanup_free_ char *path = NULL;
        Fixture *f = *state;
        Program p = begin(f);
        char text[256];

        (void) snprintf(text, sizeof(text),
                        "[Binding a]\nExecutable=%s\nFunction=main\nBudgetSec=1s\n", p.path);
        fixture_write(f, 0, "bindings.d/a.conf", text);
        reload(f);
        assert_true(asprintf(&path, "%s/bindings.d/a.conf", f->directories[0]) > 0);
        assert_ok(unlink(path));
        reload(f);
        turn_until_quiet(f);
        assert_ok(truncate(p.path, 0));
        turn_until(f, BINDING_WAITING, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_written_in_place),
                TEST(test_probes_that_cannot_be_set_yet),
                TEST(test_probes_that_cannot_be_set),
                TEST(test_written_to_what_is_no_program),
                TEST(test_renamed_over),
                TEST(test_removed_and_made_again),
                TEST(test_a_touch_changes_nothing),
                TEST(test_written_all_the_time),
                TEST(test_compared_at_reload),
                TEST(test_written_before_it_was_watched),
                TEST(test_added_while_probes_leave),
                TEST(test_two_on_a_file),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
