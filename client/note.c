/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Notes. What begins with the name of the program is the reason of a failure, or of something that
 * was left out; a note is neither, and a script need not look at it. As for errors, whoever writes
 * one escapes what comes from others.
 */

#include "note.h"

#include <stdarg.h>
#include <stdio.h>

void note(const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) fputs("Note: ", stderr);
        (void) vfprintf(stderr, format, ap);
        (void) fputc('\n', stderr);
        va_end(ap);
}
