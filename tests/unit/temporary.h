/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TEMPORARY_H
#define TEMPORARY_H

/* A directory that goes away with everything in it. A failure to make something aborts the test. */

typedef struct Temporary {
        char path[64];
        char buf[512];
} Temporary;

void temporary_init(Temporary *tmp);
void temporary_done(Temporary *tmp);

/* The path of name below it, valid until the next call. */
const char *temporary_path(Temporary *tmp, const char *name);

/* Writes a file, with the directories above it. */
void temporary_write(Temporary *tmp, const char *name, const char *text);

/* The same, with another file's bytes. */
void temporary_copy(Temporary *tmp, const char *name, const char *from);

#endif
