/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_LIBRARIES_H
#define ELF_LIBRARIES_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/root.h"

/* A program and the libraries that it is linked with, in the order in which they are found. */

#define LIBRARIES_MAX 1024

typedef struct Library {
        char *path;    /* with links resolved; NULL: it was not found */
        char *name;    /* as it is asked for */
        size_t loader; /* the index of the one that first asks for it; of the program: its own */
} Library;

typedef struct Libraries {
        Library *items; /* the program first */
        size_t n;
} Libraries;

void libraries_done(Libraries *libraries);

/*
 * Finds them as the dynamic loader would, from nothing but files: what a program opens when it runs
 * is not among them. Each is there once. program: an absolute path in that tree, as are all others.
 * Returns 0, -ENOMEM, -E2BIG.
 */
int libraries_find(const Root *root, const char *program, Libraries *ret);

#endif
