/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Files that take the place of the program that runs: a copy of this one, which removes itself. */

#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own-program.h"
#include "temporary.h"
#include "test.h"

static const char *arg_program;

/* As the copy. Returns the number of the question that has got the wrong answer, or 0. */
static int replace_itself(const char *path, const char *path_before) {
        FILE *other;

        if (own_program_is_replaced())
                return 1;
        own_program_note();
        if (own_program_is_replaced())
                return 2;
        /* As an old one is kept: it takes its name with it. */
        if (rename(path, path_before) < 0 || own_program_is_replaced())
                return 3;
        other = fopen(path, "we");
        return other && fclose(other) == 0 && own_program_is_replaced() ? 0 : 4;
}

static void test_of_the_copy(void **state) {
        Temporary tmp;
        char before[512];
        const char *path;
        int status;
        pid_t pid;

        temporary_init(&tmp);
        temporary_copy(&tmp, "program", arg_program);
        (void) snprintf(before, sizeof(before), "%s", temporary_path(&tmp, "before"));
        path = temporary_path(&tmp, "program");
        assert_int_equal(chmod(path, 0700), 0);
        pid = fork();
        if (pid == 0) {
                (void) execl(path, path, path, before, NULL);
                _exit(127);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        temporary_done(&tmp);
        assert_int_equal(status, 0);
}

int main(int argc, char *argv[]) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_of_the_copy),
        };

        if (argc > 2)
                return replace_itself(argv[1], argv[2]);
        arg_program = argv[0];
        return cmocka_run_group_tests(tests, NULL, NULL);
}
