/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * caller FD: has windows as the test at the other end of the socket asks for them (caller.h). The
 * test starts a copy, which nobody else has probes on.
 */

#include "caller.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

void caller_function(uint32_t usec);
void caller_begin(void);
void caller_end(void);

__attribute__((noinline)) void caller_function(uint32_t usec) {
        __asm__ volatile("nop");
        if (usec > 0)
                (void) usleep(usec);
        __asm__ volatile("nop");
}

__attribute__((noinline)) void caller_begin(void) {
        __asm__ volatile("nop");
}

__attribute__((noinline)) void caller_end(void) {
        __asm__ volatile("nop" ::: "memory");
}

static void obey(const CallerRequest *request) {
        for (uint32_t i = 0; i < request->n; i++) {
                if (request->window == CALLER_FUNCTION) {
                        caller_function(request->usec);
                        continue;
                }
                caller_begin();
                if (request->usec > 0)
                        (void) usleep(request->usec);
                caller_end();
        }
}

int main(int argc, char *argv[]) {
        CallerRequest request;
        int fd;

        if (argc != 2)
                return 2;
        fd = atoi(argv[1]);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (recv(fd, &request, sizeof(request), 0) == (ssize_t) sizeof(request)) {
                obey(&request);
                if (send(fd, &request, sizeof(request), MSG_NOSIGNAL) < 0)
                        break;
        }
        return EXIT_SUCCESS;
}
