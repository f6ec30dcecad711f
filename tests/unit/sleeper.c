/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sleeper.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

/* The pipe is closed before the program is mapped. */
static bool has_mapped(pid_t pid, const char *path) {
        char maps[64], line[512];
        bool found = false;
        FILE *f;

        (void) snprintf(maps, sizeof(maps), "/proc/%i/maps", pid);
        f = fopen(maps, "re");
        assert_non_null(f);
        while (!found && fgets(line, sizeof(line), f))
                found = strstr(line, "r-xp") && strstr(line, path);
        (void) fclose(f);
        return found;
}

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
        for (unsigned i = 0; !has_mapped(pid, path); i++) {
                assert_true(i < 10000);
                assert_ok(usleep(1000));
        }
        return pid;
}
