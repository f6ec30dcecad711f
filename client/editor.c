/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The user's editor, chosen as systemctl does. A variable can have options, so it goes through the
 * shell; the path does not. What is typed while it runs is for the editor, ^C, too: neither we nor
 * the shell end of that.
 */

#include "editor.h"

#include <err.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/cleanup.h"

static const char *choose(void) {
        static const char *const variables[] = { "SYSTEMD_EDITOR", "EDITOR", "VISUAL" };

        for (size_t i = 0; i < ELEMENTSOF(variables); i++) {
                const char *editor = getenv(variables[i]);

                if (editor && *editor != '\0')
                        return editor;
        }
        return NULL;
}

static void __attribute__((noreturn)) run(const char *path) {
        static const char *const editors[] = { "editor", "nano", "vim", "vi" };
        const char *editor = choose();

        if (editor) {
                _cleanup_free_ char *command = NULL;

                if (asprintf(&command, "trap : INT QUIT; %s \"$1\"", editor) < 0)
                        _exit(EXIT_FAILURE);
                (void) execl("/bin/sh", "sh", "-c", command, "sh", path, NULL);
        } else
                for (size_t i = 0; i < ELEMENTSOF(editors); i++)
                        (void) execlp(editors[i], editors[i], path, NULL);
        warnx("No editor was found; set $EDITOR");
        _exit(EXIT_FAILURE);
}

/* What becomes of those that a terminal sends. */
typedef struct Signals {
        struct sigaction interrupt, quit;
} Signals;

/* ret_before may be NULL. */
static void set_signals(const Signals *signals, Signals *ret_before) {
        (void) sigaction(SIGINT, &signals->interrupt, ret_before ? &ret_before->interrupt : NULL);
        (void) sigaction(SIGQUIT, &signals->quit, ret_before ? &ret_before->quit : NULL);
}

/* Returns 0 and how it has ended, or a negative errno after it has said what is wrong. */
static int run_and_wait(const char *path, const Signals *signals, int *ret_status) {
        pid_t pid;

        (void) fflush(stdout);
        pid = fork();
        if (pid < 0) {
                int r = -errno;

                warn("Failed to start an editor");
                return r;
        }
        if (pid == 0) {
                set_signals(signals, NULL);
                run(path);
        }
        while (waitpid(pid, ret_status, 0) < 0)
                if (errno != EINTR) {
                        int r = -errno;

                        warn("Failed to wait for the editor");
                        return r;
                }
        return 0;
}

int editor_run(const char *path) {
        const Signals ignored = { { .sa_handler = SIG_IGN }, { .sa_handler = SIG_IGN } };
        Signals before;
        int status = 0, r;

        set_signals(&ignored, &before);
        r = run_and_wait(path, &before, &status);
        set_signals(&before, NULL);
        if (r < 0)
                return r;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                warnx("The editor failed; nothing was changed");
                return -EIO;
        }
        return 0;
}
