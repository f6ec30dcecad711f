/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* system-call.h: names and numbers, and what is said of names that are none. */

#include "base/system-call.h"

#include <stdlib.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "test.h"

static void test_numbers(void **state) {
        static const struct {
                const char *name;
                uint32_t number;
        } cases[] = {
                { "fsync", SYS_fsync },
                { "fdatasync", SYS_fdatasync },
                { "futex", SYS_futex },
                { "clone", SYS_clone },
                { "restart_syscall", SYS_restart_syscall },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *why = NULL;
                uint32_t number;

                assert_ok(system_call_find(cases[i].name, &number, &why));
                assert_int_equal(number, cases[i].number);
                assert_null(why);
        }
}

/* Numbers of arch/x86/entry/syscalls/syscall_32.tbl. */
static void test_calls_of_32_bits(void **state) {
#if defined(__x86_64__)
        static const struct {
                uint32_t number_32, number;
        } cases[] = {
                { 118, SYS_fsync },
                { 199, SYS_getuid },          /* getuid32 */
                { 24, SYS_getuid },           /* the one of 16 bits */
                { 422, SYS_futex },           /* futex_time64 */
                { 407, SYS_clock_nanosleep }, /* clock_nanosleep_time64 */
                { 403, SYS_clock_gettime },   /* clock_gettime64 */
                { 192, SYS_mmap },            /* mmap2 */
                { 140, SYS_lseek },           /* _llseek */
                { 300, SYS_newfstatat },      /* fstatat64 */
                { 361, SYS_bind },            /* not by way of socketcall any more */
                { 0, SYS_restart_syscall },
        };
        static const uint32_t none[] = { 102 /* socketcall */, 117 /* ipc */, 500, UINT32_MAX };
        uint32_t number;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                assert_ok(system_call_of_32_bits(cases[i].number_32, &number));
                assert_int_equal(number, cases[i].number);
        }
        for (size_t i = 0; i < ELEMENTSOF(none); i++)
                assert_int_equal(system_call_of_32_bits(none[i], &number), -ENOENT);
#else
        uint32_t number;

        assert_int_equal(system_call_of_32_bits(1, &number), -ENOENT);
#endif
}

static void assert_refused(const char *name, int error, const char *words) {
        _cleanup_free_ char *why = NULL;
        uint32_t number = 7;

        assert_int_equal(system_call_find(name, &number, &why), error);
        assert_non_null(why);
        if (!strstr(why, words))
                fail_msg("'%s' is not in: %s", words, why);
        assert_int_equal(number, 7);
}

static void test_names_that_are_none(void **state) {
        assert_refused("fsnyc", -ENOENT, "near names: fsync");
        assert_refused("datasync", -ENOENT, "near names: fdatasync");
        assert_refused("Fsync", -ENOENT, "fsync");
        assert_refused("", -ENOENT, "is not the name of a system call");
        assert_refused("xyzzy_plugh", -ENOENT, "is not the name of a system call");
        assert_refused("-1", -ENOENT, "is not the name of a system call");
}

static void test_those_that_do_not_return(void **state) {
        assert_refused("exit", -EOPNOTSUPP, "never returns");
        assert_refused("exit_group", -EOPNOTSUPP, "never returns");
        assert_refused("execve", -EOPNOTSUPP, "another program begins in its place");
        assert_refused("execveat", -EOPNOTSUPP, "another program begins in its place");
        assert_refused("rt_sigreturn", -EOPNOTSUPP, "does not return to its caller");
#if defined(__x86_64__)
        assert_refused("socketcall", -EOPNOTSUPP, "of this machine's architecture");
#endif
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_calls_of_32_bits),
                cmocka_unit_test(test_names_that_are_none),
                cmocka_unit_test(test_those_that_do_not_return),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
