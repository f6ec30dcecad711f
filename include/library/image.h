/* SPDX-License-Identifier: MIT */
#ifndef LIBRARY_IMAGE_H
#define LIBRARY_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

/* A file of marks in memory, see image.c. */

typedef struct Mark {
        const char *name; /* ends with length, not with a zero */
        size_t length;
        bool has_key;
} Mark;

/* Returns 0, -ENOMEM, or -EOPNOTSUPP for a machine without marks; *ret is the caller's. */
int image_make(const Mark *marks, size_t n_marks, void **ret, size_t *ret_size);

#endif
