/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The daemon's own log. When standard error is the journal (JOURNAL_STREAM= names its device and
 * inode), messages go there in its native protocol, with level, errno and place in the code; else
 * they go to standard error as text. A journal that does not take them now gets them later, or not
 * at all (journal-socket.c). It never logs reports of violations: see journal.c.
 */

#include "log.h"

#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>

#include "journal-socket.h"

#define TEXT_MAX 2048

static int log_max_level = LOG_INFO;

void log_set_max_level(int level) {
        log_max_level = level;
}

static int stderr_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long dev, ino;
        struct stat st;

        return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
               fstat(STDERR_FILENO, &st) >= 0 && st.st_dev == dev && st.st_ino == ino;
}

static void send_to_journal(int level, int error, const char *file, int line, const char *func,
                            const char *text) {
        char message[TEXT_MAX + 16], fields[6][256];
        struct iovec iov[1 + ELEMENTSOF(fields)] = { { .iov_base = message } };

        iov[0].iov_len = (size_t) snprintf(message, sizeof(message), "MESSAGE=%s", text);
        (void) snprintf(fields[0], sizeof(fields[0]), "PRIORITY=%i", level);
        (void) snprintf(fields[1], sizeof(fields[1]), "SYSLOG_IDENTIFIER=tlobd");
        (void) snprintf(fields[2], sizeof(fields[2]), "ERRNO=%i", error);
        (void) snprintf(fields[3], sizeof(fields[3]), "CODE_FILE=%s", file);
        (void) snprintf(fields[4], sizeof(fields[4]), "CODE_LINE=%i", line);
        (void) snprintf(fields[5], sizeof(fields[5]), "CODE_FUNC=%s", func);
        for (size_t i = 0; i < ELEMENTSOF(fields); i++)
                iov[i + 1] = (struct iovec) { fields[i], strlen(fields[i]) };
        (void) journal_socket_send(iov, ELEMENTSOF(iov));
}

int log_internal(int level, int error, const char *file, int line, const char *func,
                 const char *format, ...) {
        int saved = errno;
        char text[TEXT_MAX];
        va_list ap;

        error = abs(error);
        if (level > log_max_level)
                return -error;

        errno = error;
        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);

        if (stderr_is_journal())
                send_to_journal(level, error, file, line, func, text);
        else
                (void) fprintf(stderr, "%s\n", text);

        errno = saved;
        return -error;
}
