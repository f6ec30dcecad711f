/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_SENTENCE_H
#define BASE_SENTENCE_H

#include <stdbool.h>

#include "base/cleanup.h"

/* Sentences for people, and text that is fit to be shown. */

/* True for valid UTF-8 without control characters: fit for D-Bus strings, files and terminals. */
bool text_is_printable(const char *s);

/*
 * A copy in which every byte that is not printable reads \xNN. Owned by the caller; NULL for want
 * of memory.
 */
char *text_escape(const char *s);

/*
 * As asprintf(), escaped as a whole: arguments may hold any bytes. Owned by the caller; NULL for
 * want of memory.
 */
char *sentence_make(const char *format, ...) _printf_(1, 2);

/*
 * Puts such a sentence into *ret_error and returns error, a negative errno; -ENOMEM and *ret_error
 * untouched for want of memory. ret_error may be NULL.
 */
int sentence_error(int error, char **ret_error, const char *format, ...) _printf_(3, 4);

#endif
