/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Syscall=: the keys, what does not go with it, and what it is resolved to. */

#include "binding/call.h"

#include <sys/syscall.h>

#include "binding/cost.h"
#include "binding/keys.h"
#include "binding/resolve.h"
#include "binding/sites.h"
#include "test.h"

static Binding *make(void) {
        Binding *binding = NULL;

        assert_ok(binding_new("x", &binding));
        return binding;
}

static void set(Binding *binding, const char *key, const char *value) {
        _cleanup_free_ char *error = NULL;

        assert_ok(binding_set_key(binding, key, value, &error));
        assert_null(error);
}

static void test_keys(void **state) {
        _cleanup_(binding_freep) Binding *binding = make(), *copy = NULL;
        char *value = NULL;

        assert_true(binding_has_file(binding));
        set(binding, "Syscall", "fsync");
        assert_string_equal(binding->start, "syscall:fsync");
        assert_string_equal(binding->stop, "return");
        assert_false(binding_has_file(binding));
        assert_int_equal(binding_get_key(binding, "Syscall", &value), -ENOENT);
        set(binding, "Unit", "a.service");
        assert_false(binding_takes_program(binding));
        assert_ok(binding_copy_for_unit(binding, "b.service", &copy));
        assert_string_equal(copy->start, "syscall:fsync");

        set(binding, "Function", "fsync");
        assert_true(binding_has_file(binding));
        set(binding, "Start", "syscall:read");
        assert_false(binding_has_file(binding));
        set(binding, "Syscall", "");
        assert_null(binding->start);
        assert_null(binding->stop);
}

static void assert_bad(const char *key, const char *value, const char *words) {
        _cleanup_(binding_freep) Binding *binding = make();
        _cleanup_free_ char *error = NULL;

        assert_int_equal(binding_set_key(binding, key, value, &error), -EINVAL);
        if (!strstr(error, words))
                fail_msg("'%s' is not in: %s", words, error);
        assert_null(binding->start);
        assert_null(binding->stop);
}

static void test_bad_values(void **state) {
        assert_bad("Syscall", "fsnyc",
                   "Syscall=fsnyc is not possible: 'fsnyc' is not the name of a system call; near "
                   "names: fsync");
        assert_bad("Start", "syscall:fsnyc", "Start=syscall:fsnyc is not possible: 'fsnyc' is not");
        assert_bad("Start", "syscall:", "is not the name of a system call");
        assert_bad("Syscall", "exit_group", "'exit_group' never returns: it ends the process");
        assert_bad("Syscall", "execve", "another program begins in its place");
        assert_bad("Syscall", "syscall:fsync", "is not the name of a system call");
        assert_bad("Function", "syscall:fsync",
                   "Function=syscall:fsync is not a function: write Syscall=fsync");
        assert_bad("Stop", "syscall:fsync", "only Start= can be a system call");
}

static void assert_check(const Binding *binding, const char *words) {
        _cleanup_free_ char *error = NULL;

        assert_int_equal(binding_check(binding, &error), -EINVAL);
        if (!strstr(error, words))
                fail_msg("'%s' is not in: %s", words, error);
}

static void test_check(void **state) {
        _cleanup_(binding_freep) Binding *binding = make();

        set(binding, "Syscall", "fsync");
        assert_check(binding, "BudgetSec= is missing");
        set(binding, "BudgetSec", "5ms");
        assert_ok(binding_check(binding, NULL));
        set(binding, "Executable", "libc.so.6");
        assert_check(binding, "Executable=libc.so.6 and Syscall=fsync exclude each other");
        set(binding, "Executable", "");
        set(binding, "Stop", "ret-sites");
        assert_check(binding, "Stop=ret-sites is not possible with Start=syscall:fsync");
        set(binding, "Stop", "close");
        assert_check(binding, "Write Stop=return");
        set(binding, "Stop", "");
        assert_check(binding, "Stop= is missing");
}

static void test_resolve(void **state) {
        _cleanup_(binding_freep) Binding *binding = make();
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_free_ char *note = NULL, *cost = NULL;

        set(binding, "Syscall", "fsync");
        set(binding, "BudgetSec", "5ms");
        set(binding, "Unit", "a.service");
        assert_ok(binding_resolve(binding, &file, NULL));
        assert_int_equal(file->fd, -EBADF);
        assert_false(file->is_program);
        assert_null(binding->resolved.path);
        assert_int_equal(binding->resolved.sites.start.offset, SYS_fsync);
        assert_int_equal(binding->resolved.sites.how, TLOB_STOP_CALL);
        assert_false(binding->resolved.sites.has_frame);
        assert_ok(binding_describe_stop(binding, &note));
        assert_null(note);
        /* Also for one that is confined: others pay. */
        assert_ok(binding_describe_cost(binding, NULL, NULL, &cost));
        assert_non_null(strstr(cost, "every system call on this machine takes"));
        assert_non_null(strstr(cost, "and each fsync()"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_keys),
                cmocka_unit_test(test_bad_values),
                cmocka_unit_test(test_check),
                cmocka_unit_test(test_resolve),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
