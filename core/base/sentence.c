/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sentences for people. They quote what comes from elsewhere (names of files and tasks, symbols,
 * values from configuration files) and end in the journal, in D-Bus strings and on terminals, where
 * control characters can lie and bytes that are not UTF-8 are refused. So a sentence is formatted
 * first and escaped as a whole afterwards: no caller has to remember it.
 *
 * "Printable" is valid UTF-8 (no surrogates, no overlong forms, at most U+10FFFF) without the
 * control characters of ASCII and of Latin-1 (U+0080 to U+009F), and without those that reorder the
 * line (U+202A to U+202E, U+2066 to U+2069).
 */

#include "base/sentence.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

static bool code_point_is_printable(uint32_t c) {
        return c >= 0x20 && (c < 0x7f || c > 0x9f) && (c < 0xd800 || c > 0xdfff) &&
               (c < 0x202a || c > 0x202e) && (c < 0x2066 || c > 0x2069) && c <= 0x10ffff;
}

/* The length of the printable character that s begins with, 0 if there is none. */
static size_t printable_length(const unsigned char *s) {
        static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
        uint32_t c = s[0];
        size_t n;

        if (c < 0x80)
                return code_point_is_printable(c) ? 1 : 0;
        if (c < 0xc0 || c >= 0xf8)
                return 0;

        n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
        c &= 0xffU >> (n + 1);
        for (size_t i = 1; i < n; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (s[i] & 0x3f);
        }
        return c >= smallest[n] && code_point_is_printable(c) ? n : 0;
}

bool text_is_printable(const char *s) {
        while (*s != '\0') {
                size_t n = printable_length((const unsigned char *) s);

                if (n == 0)
                        return false;
                s += n;
        }
        return true;
}

char *text_escape(const char *s) {
        static const char digits[] = "0123456789abcdef";
        char *copy, *p;

        copy = p = malloc(4 * strlen(s) + 1);
        if (!copy)
                return NULL;

        while (*s != '\0') {
                size_t n = printable_length((const unsigned char *) s);

                if (n > 0) {
                        memcpy(p, s, n);
                        p += n;
                        s += n;
                        continue;
                }
                *p++ = '\\';
                *p++ = 'x';
                *p++ = digits[(unsigned char) *s >> 4];
                *p++ = digits[(unsigned char) *s & 15];
                s++;
        }
        *p = '\0';
        return copy;
}

static char *sentence_vmake(const char *format, va_list ap) _printf_(1, 0);

static char *sentence_vmake(const char *format, va_list ap) {
        _cleanup_free_ char *s = NULL;

        if (vasprintf(&s, format, ap) < 0) {
                s = NULL;
                return NULL;
        }
        return text_is_printable(s) ? TAKE_PTR(s) : text_escape(s);
}

char *sentence_make(const char *format, ...) {
        va_list ap;
        char *s;

        va_start(ap, format);
        s = sentence_vmake(format, ap);
        va_end(ap);
        return s;
}

int sentence_error(int error, char **ret_error, const char *format, ...) {
        va_list ap;
        char *s;

        if (!ret_error)
                return error;

        va_start(ap, format);
        s = sentence_vmake(format, ap);
        va_end(ap);
        if (!s)
                return -ENOMEM;
        *ret_error = s;
        return error;
}
