/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The daemon's own log. When standard error is the journal (JOURNAL_STREAM= names its device and
 * inode), messages go there in its native protocol, with level, errno and place in the code; else
 * they go to standard error as text. It never logs reports of violations: see journal.c.
 */

#include "log.h"

#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <systemd/sd-journal.h>

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
        char code_file[256], code_line[32];

        (void) snprintf(code_file, sizeof(code_file), "CODE_FILE=%s", file);
        (void) snprintf(code_line, sizeof(code_line), "CODE_LINE=%i", line);
        (void) sd_journal_send_with_location(code_file, code_line, func, "MESSAGE=%s", text,
                                             "PRIORITY=%i", level, "SYSLOG_IDENTIFIER=tlobd",
                                             "ERRNO=%i", error, NULL);
}

int log_internal(int level, int error, const char *file, int line, const char *func,
                 const char *format, ...) {
        int saved = errno;
        char text[2048];
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
