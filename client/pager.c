/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The pager, as systemd's tools have it: $SYSTEMD_PAGER, else $PAGER, else less; with less told to
 * leave by itself when all fits on the screen (so there is no need to count lines here). An empty
 * variable or "cat" means none.
 *
 * It is the only other program that tlobctl runs. A shell is only used when the variable needs one,
 * as it holds more than a word. Under sudo or pkexec the variables are those of the user, who must
 * not get more rights through the pager: then it is less, and in its secure mode.
 */

#include "pager.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "cleanup.h"

static bool is_elevated(void) {
        return getenv("SUDO_UID") || getenv("PKEXEC_UID");
}

/* The command, or NULL when no pager is wanted. */
static const char *choose_command(void) {
        const char *command = getenv("SYSTEMD_PAGER") ?: getenv("PAGER") ?: "less";

        if (streq(command, "") || streq(command, "cat"))
                return NULL;
        return is_elevated() ? "less" : command;
}

static void __attribute__((noreturn)) run(const char *command, int in) {
        bool is_word = !strpbrk(command, " \t\n|&;<>()$`\\\"'*?[]#~=%{}");

        (void) signal(SIGINT, SIG_DFL);
        (void) signal(SIGPIPE, SIG_DFL);
        (void) setenv("LESS", getenv("SYSTEMD_LESS") ?: "FRSXMK", true);
        (void) setenv("LESSCHARSET", getenv("SYSTEMD_LESSCHARSET") ?: "utf-8", true);
        if (is_elevated())
                (void) setenv("LESSSECURE", "1", true);
        if (dup2(in, STDIN_FILENO) >= 0) {
                if (is_word)
                        (void) execlp(command, command, NULL);
                else
                        (void) execl("/bin/sh", "sh", "-c", command, NULL);
        }
        /* Without the pager, show all the same. */
        (void) execlp("cat", "cat", NULL);
        _exit(EXIT_FAILURE);
}

void pager_open(Pager *pager) {
        const char *command = choose_command();
        int fds[2];
        pid_t pid;

        if (pager->pid > 0 || !command || !isatty(STDOUT_FILENO) ||
            streq_empty(getenv("TERM"), "dumb"))
                return;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return;

        (void) fflush(stdout);
        pid = fork();
        if (pid == 0)
                run(command, fds[0]);
        safe_close(fds[0]);
        if (pid > 0 && dup2(fds[1], STDOUT_FILENO) >= 0) {
                pager->pid = pid;
                /* Both belong to the pager now: the user stops a search, or leaves early. */
                (void) signal(SIGINT, SIG_IGN);
                (void) signal(SIGPIPE, SIG_IGN);
        }
        safe_close(fds[1]);
}

void pager_close(Pager *pager) {
        if (pager->pid <= 0)
                return;

        (void) fflush(stdout);
        safe_close(STDOUT_FILENO);
        while (waitpid(pager->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        pager->pid = 0;
}
