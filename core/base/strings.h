/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_STRINGS_H
#define BASE_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

/* Lists of strings, all owned by the list, with NULL after the last. NULL is an empty list. */

char **strings_free(char **strings);
DEFINE_CLEANUP(char *, strings_free);

size_t strings_count(char *const *strings);

/* Are they the same strings in the same order? */
bool strings_equal(char *const *a, char *const *b);

/* Adds a copy of s. Returns 0 or -ENOMEM, and then the list is what it was. */
int strings_append(char ***strings, const char *s);

/* A copy of NULL is NULL, one of an empty list an empty list. Returns 0 or -ENOMEM. */
int strings_copy(char *const *strings, char ***ret);

#endif
