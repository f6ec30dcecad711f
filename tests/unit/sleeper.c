/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sleeper.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

pid_t sleeper_start(const char *path) {
        int alive[2];
        char byte;
        pid_t pid;

        assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) execl(path, path, "1000", NULL);
                _exit(EXIT_FAILURE);
        }
        (void) close(alive[1]);
        assert_int_equal(read(alive[0], &byte, 1), 0);
        (void) close(alive[0]);
        return pid;
}
