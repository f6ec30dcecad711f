/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_ROOT_H
#define ELF_ROOT_H

#include <stdint.h>

#include "base/cleanup.h"

/* The tree in which paths are looked up: that of this process, of another one, or a directory. */
typedef struct Root {
        int fd;     /* -EBADF: that of this process */
        char *path; /* of the tree, from outside; NULL: paths in it are the same outside */
} Root;

#define ROOT_OWN ((Root){ .fd = -EBADF })

void root_done(Root *root);

/*
 * The root of a process. Returns 1 if it is the root that this process has, else 0, or a negative
 * errno.
 */
int root_of_process(uint32_t pid, Root *ret);

int root_of_directory(const char *path, Root *ret);

/* As open(), with all links on the way taken inside the tree. */
int root_open(const Root *root, const char *path, int flags);

/* As realpath(), in the tree. 0 or a negative errno. */
int root_resolve(const Root *root, const char *path, char **ret);

/* Where an open file is, as /proc shows it. 0 or a negative errno. */
int root_path_of_fd(int fd, char **ret);

/* The same file's path from outside; NULL for want of memory. */
char *root_outside(const Root *root, const char *path);

#endif
