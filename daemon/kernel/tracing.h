/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_TRACING_H
#define KERNEL_TRACING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* The tracing file system: where it is, and its files. All paths are below its root. */

typedef struct KernelTracing {
        char *path;
        bool mounted; /* by us */
} KernelTracing;

/*
 * Finds it, and mounts it if it is nowhere. 0, or a negative errno with a sentence that says what
 * stands against it. libtracefs works on it from then on.
 */
int kernel_tracing_init(KernelTracing *tracing, char **ret_reason);

/* Unmounts what was mounted. */
void kernel_tracing_done(KernelTracing *tracing);

/* The path of a file, in the caller's memory; NULL for want of it. */
char *kernel_tracing_path(const KernelTracing *tracing, const char *file);

bool kernel_tracing_has(const KernelTracing *tracing, const char *file);

/* The whole file, as a string of the caller's. */
int kernel_tracing_read(const KernelTracing *tracing, const char *file, char **ret);

/*
 * One write, without truncation: some files take that for "everything off". Returns 0 or a negative
 * errno.
 */
int kernel_tracing_write(const KernelTracing *tracing, const char *file, const char *text);

/* A file with '0' or '1'. */
int kernel_tracing_read_switch(const KernelTracing *tracing, const char *file, bool *ret);

/* True if the file has that word on a line of its own. */
bool kernel_tracing_has_line(const KernelTracing *tracing, const char *file, const char *line);

#endif
