/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The user's editor, chosen as systemctl does. A variable can have options, so it goes through the
 * shell; the path does not.
 */

#include "editor.h"

#include <err.h>
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

                if (asprintf(&command, "%s \"$1\"", editor) < 0)
                        _exit(EXIT_FAILURE);
                (void) execl("/bin/sh", "sh", "-c", command, "sh", path, NULL);
        } else
                for (size_t i = 0; i < ELEMENTSOF(editors); i++)
                        (void) execlp(editors[i], editors[i], path, NULL);
        warnx("No editor was found; set $EDITOR");
        _exit(EXIT_FAILURE);
}

int editor_run(const char *path) {
        int status = 0;
        pid_t pid;

        (void) fflush(stdout);
        pid = fork();
        if (pid < 0) {
                int r = -errno;

                warn("Failed to start an editor");
                return r;
        }
        if (pid == 0)
                run(path);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR) {
                        int r = -errno;

                        warn("Failed to wait for the editor");
                        return r;
                }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                warnx("The editor failed; nothing was changed");
                return -EIO;
        }
        return 0;
}
