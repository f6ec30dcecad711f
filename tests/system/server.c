/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A service as many are: a loop waits for the next request, and has it handled, which takes WORK_NS
 * of a CPU and up to 3 ms of sleep in a system call that waits for no work. At SIGTERM it says how
 * many it has handled.
 *
 * usage: server
 */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "request.h"

static volatile sig_atomic_t stopping;
static unsigned long n_handled;

static void on_term(int number) {
        stopping = 1;
}

__attribute__((noinline)) static void serve(const char *path) {
        int fd = open(path, O_RDWR | O_CLOEXEC);

        while (!stopping && fd >= 0) {
                (void) poll(NULL, 0, 3);
                handle_request(fd);
                n_handled++;
        }
}

/* Has the lock 3 of every 4 ms. */
static void hold_locks(const char *path) {
        static const struct timespec held = { 0, 3000000 }, pause = { 0, 1000000 };
        int fd = open(path, O_RDWR | O_CLOEXEC);

        while (!stopping && fd >= 0) {
                (void) flock(fd, LOCK_EX);
                (void) nanosleep(&held, NULL);
                (void) flock(fd, LOCK_UN);
                (void) nanosleep(&pause, NULL);
        }
}

int main(void) {
        const struct sigaction action = { .sa_handler = on_term };
        char path[] = "/tmp/tlob-server-XXXXXX";
        int fd = mkstemp(path);
        pid_t child;

        if (fd < 0 || sigaction(SIGTERM, &action, NULL) < 0)
                return 1;
        child = fork();
        if (child == 0) {
                hold_locks(path);
                _exit(0);
        }
        serve(path);
        (void) kill(child, SIGTERM);
        (void) waitpid(child, NULL, 0);
        (void) unlink(path);
        (void) printf("handled %lu\n", n_handled);
        return 0;
}
