/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_LINE_H
#define KERNEL_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* The file "monitor" of the kernel's tlob monitor, as it reads: one binding a line. */

typedef struct KernelLine {
        char *text; /* as it stands there */
        char *path; /* NULL: a line that we do not understand; the rest is unused then */
        char *name; /* NULL: it has none */
        uint64_t start;
        uint64_t stop;
        uint64_t threshold; /* in the unit of the dialect */
} KernelLine;

typedef struct KernelLines {
        KernelLine *items;
        size_t n;
} KernelLines;

/* Takes the whole file apart. Returns 0 or -ENOMEM. */
int kernel_lines_parse(const char *text, KernelLines *ret);

/* Takes one line more, copied. Returns 0 or -ENOMEM. */
int kernel_lines_add(KernelLines *lines, const char *text, size_t length);
void kernel_lines_done(KernelLines *lines);

/* Of a line of its own; one that is taken out of lines is its taker's. */
void kernel_line_done(KernelLine *line);

/* True if both are the same binding: name, file, places and threshold. */
bool kernel_line_equal(const KernelLine *a, const KernelLine *b);

/* The line in lines that is the same binding; NULL if there is none. Owned by lines. */
const KernelLine *kernel_lines_find(const KernelLines *lines, const KernelLine *line);

#endif
