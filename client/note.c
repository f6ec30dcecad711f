/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Notes. What begins with the name of the program is the reason of a failure, or of something that
 * was left out; a note is neither, and a script need not look at it. It can have paths in it, which
 * are as their owner has made them: what could not be printed is escaped.
 */

#include "note.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sentence.h"

void note(const char *format, ...) {
        _cleanup_free_ char *text = NULL, *escaped = NULL;
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&text, format, ap) < 0)
                text = NULL;
        va_end(ap);
        escaped = text ? text_escape(text) : NULL;
        (void) fprintf(stderr, "Note: %s\n", escaped ?: strerror(ENOMEM));
}
