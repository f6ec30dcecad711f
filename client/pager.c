/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The pager, as systemd's tools have it: $SYSTEMD_PAGER, else $PAGER, else less. An empty variable
 * or "cat" means none. The output is collected first, and a pager is only started when it does not
 * fit on the screen: not every pager leaves by itself, and less clears what it showed on some
 * terminals.
 *
 * It is the only other program that shows output. A shell is only used when the variable needs one,
 * as it holds more than a word. Under sudo or pkexec the variables are those of the user, who must
 * not get more rights through the pager: then it is less, and in its secure mode.
 */

#include "pager.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/io.h"

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

static void __attribute__((noreturn)) run(int in) {
        const char *command;

        (void) setenv("LESS", getenv("SYSTEMD_LESS") ?: "FRSXMK", true);
        (void) setenv("LESSCHARSET", getenv("SYSTEMD_LESSCHARSET") ?: "utf-8", true);
        if (is_elevated())
                (void) setenv("LESSSECURE", "1", true);
        command = choose_command();
        if (command && dup2(in, STDIN_FILENO) >= 0) {
                bool is_word = !strpbrk(command, " \t\n|&;<>()$`\\\"'*?[]#~=%{}");

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
        _cleanup_close_ int collected = -EBADF, out = -EBADF;

        if (pager->open || !choose_command() || !isatty(STDOUT_FILENO) ||
            streq_empty(getenv("TERM"), "dumb"))
                return;
        collected = memfd_create("output", MFD_CLOEXEC);
        out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        (void) fflush(stdout);
        if (collected < 0 || out < 0 || dup2(collected, STDOUT_FILENO) < 0)
                return;
        *pager = (Pager) { .open = true, .collected = TAKE_FD(collected), .out = TAKE_FD(out) };
}

/* Does the text fit on the screen, with the shell's prompt below it? Bytes count as columns. */
static bool fits(const char *text, size_t size, int out) {
        unsigned lines = 1, column = 0;
        struct winsize screen = {};

        if (ioctl(out, TIOCGWINSZ, &screen) < 0 || screen.ws_col == 0)
                return false;
        for (size_t i = 0; i < size && lines <= screen.ws_row; i++) {
                if (text[i] == '\n' || column == screen.ws_col) {
                        lines++;
                        column = 0;
                }
                column += text[i] != '\n';
        }
        return lines <= screen.ws_row;
}

/* The pager reads the memory file itself, and shows on what is standard output again. */
static int show_paged(int collected) {
        pid_t pid;

        if (lseek(collected, 0, SEEK_SET) < 0)
                return -errno;
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                run(collected);
        /* It belongs to the pager now: the user stops a search with it. */
        (void) signal(SIGINT, SIG_IGN);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        return 0;
}

static int show(int collected, int out) {
        off_t size = lseek(collected, 0, SEEK_END);
        char *text;
        int r;

        if (size <= 0)
                return size < 0 ? -errno : 0;
        text = mmap(NULL, (size_t) size, PROT_READ, MAP_PRIVATE, collected, 0);
        if (text == MAP_FAILED)
                return -errno;
        r = fits(text, (size_t) size, out) ? write_all(STDOUT_FILENO, text, (size_t) size)
                                           : show_paged(collected);
        (void) munmap(text, (size_t) size);
        return r;
}

int pager_close(Pager *pager) {
        int r;

        if (!pager->open)
                return 0;

        r = fflush(stdout) != 0 || ferror(stdout) ? -EIO : 0;
        if (dup2(pager->out, STDOUT_FILENO) < 0)
                r = -errno;
        if (r >= 0)
                r = show(pager->collected, pager->out);
        safe_close(pager->collected);
        safe_close(pager->out);
        *pager = (Pager) {};
        return r;
}
