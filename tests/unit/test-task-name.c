/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The names of threads, which give themselves what they like. */

#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "task-name.h"
#include "test.h"

static void test_names_that_a_task_gives_itself(void **state) {
        static const char *const names[] = {
                "worker",          "a b",      "two\nlines", "ends\n", "\n", "\n\n",
                "fifteen letters", "\x1b[31m", "\xff",       "",
        };
        char name[TLOB_COMM_LEN + 1], before[TLOB_COMM_LEN + 1];

        assert_int_equal(task_read_name((uint32_t) gettid(), before), 0);
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                assert_int_equal(prctl(PR_SET_NAME, names[i]), 0);
                assert_int_equal(task_read_name((uint32_t) gettid(), name), 0);
                assert_string_equal(name, names[i]);
        }
        assert_int_equal(prctl(PR_SET_NAME, before), 0);
}

static void test_one_that_is_gone(void **state) {
        char name[TLOB_COMM_LEN + 1] = "stale";
        pid_t pid = fork();

        if (pid == 0)
                _exit(0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(task_read_name((uint32_t) pid, name), -ENOENT);
        assert_string_equal(name, "");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names_that_a_task_gives_itself),
                cmocka_unit_test(test_one_that_is_gone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
