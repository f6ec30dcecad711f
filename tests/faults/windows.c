/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The program lies beside this one. All daemons ask the same process, and one that was ended while
 * it waited leaves an answer, so each request has a number.
 */

#include "windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char program[256];
static int ask_fd;

static void copy_program(const char *directory) {
        char own[256] = "", command[1024];
        char *slash;

        if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
                abort();
        slash = strrchr(own, '/');
        *slash = '\0';
        (void) snprintf(program, sizeof(program), "%s/caller", directory);
        (void) snprintf(command, sizeof(command), "cp -- '%s/faults-caller' '%s'", own, program);
        if (system(command) != 0)
                abort();
}

void windows_start(const char *directory) {
        int fds[2];
        char fd[16];
        pid_t pid;

        copy_program(directory);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                abort();
        pid = fork();
        if (pid < 0)
                abort();
        if (pid == 0) {
                (void) snprintf(fd, sizeof(fd), "%i", dup(fds[1]));
                (void) execl(program, program, fd, NULL);
                abort();
        }
        (void) close(fds[1]);
        ask_fd = fds[0];
}

const char *windows_program(void) {
        return program;
}

bool windows_run(CallerWindow window, uint32_t n, uint32_t usec) {
        static uint64_t number;
        CallerRequest request = { .window = window, .n = n, .usec = usec }, answer;

        request.number = (uint64_t) getpid() << 32 | ++number;
        if (send(ask_fd, &request, sizeof(request), MSG_NOSIGNAL) < 0)
                return false;
        do
                if (recv(ask_fd, &answer, sizeof(answer), 0) != (ssize_t) sizeof(answer))
                        return false;
        while (answer.number != request.number);
        return true;
}
