/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * polkit's agent for a terminal, as systemctl has it: pkttyagent asks for the password of whoever
 * may do what polkit guards. With --fallback it leaves that to a desktop's own agent, if there is
 * one. It closes the pipe that it is given when it can be asked, or when it cannot start.
 */

#include "polkit-agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/cleanup.h"

#define PROGRAM "pkttyagent"

/* It keeps the terminal, and must not survive us. */
static void __attribute__((noreturn)) run(int notify, pid_t parent) {
        char fd[3 * sizeof(int)];

        if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent ||
            fcntl(notify, F_SETFD, 0) < 0)
                _exit(EXIT_FAILURE);
        (void) snprintf(fd, sizeof(fd), "%i", notify);
        (void) execlp(PROGRAM, PROGRAM, "--notify-fd", fd, "--fallback", NULL);
        _exit(EXIT_FAILURE);
}

static void wait_for_end(int fd) {
        struct pollfd end = { .fd = fd };

        while (poll(&end, 1, -1) < 0 && errno == EINTR)
                ;
}

void polkit_agent_open(PolkitAgent *agent) {
        pid_t pid, parent = getpid();
        int fds[2];

        if (agent->pid > 0 || geteuid() == 0 || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
                return;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return;

        (void) fflush(stdout);
        pid = fork();
        if (pid == 0)
                run(fds[1], parent);
        safe_close(fds[1]);
        if (pid > 0) {
                agent->pid = pid;
                wait_for_end(fds[0]);
        }
        safe_close(fds[0]);
}

void polkit_agent_close(PolkitAgent *agent) {
        if (agent->pid <= 0)
                return;

        /* It may be stopped, as a reader of a terminal that it does not own. */
        (void) kill(agent->pid, SIGTERM);
        (void) kill(agent->pid, SIGCONT);
        while (waitpid(agent->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        agent->pid = 0;
}
