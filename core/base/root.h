/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_ROOT_H
#define BASE_ROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* The tree in which paths are looked up: that of this process, of another one, or a directory. */
typedef struct Root {
        int fd;     /* -EBADF: that of this process */
        char *path; /* of the tree, from outside; NULL: paths in it are the same outside */
} Root;

#define ROOT_OWN ((Root) { .fd = -EBADF })

void root_done(Root *root);

/* Another handle of the same tree. 0 or a negative errno. */
int root_copy(const Root *root, Root *ret);

/*
 * The root of a process. Returns 1 if it is the root that this process has, else 0, or a negative
 * errno.
 */
int root_of_process(uint32_t pid, Root *ret);

/*
 * The root of PID 1, in which paths are what people mean by them, also those that our unit hides
 * from us. Returns 1 with ROOT_OWN if it shows nothing else than our own, 0 if it is another, or a
 * negative errno if it cannot be seen.
 */
int root_of_machine(Root *ret);

int root_of_directory(const Root *root, const char *path, Root *ret);

/* As open(), with all links on the way taken inside the tree. */
int root_open(const Root *root, const char *path, int flags);

/* As realpath(), in the tree. 0 or a negative errno. */
int root_resolve(const Root *root, const char *path, char **ret);

/*
 * As open(), stat() and opendir(), in our own tree, or if it is not there, in that of PID 1. The
 * last one sets errno, the others return it.
 */
int root_open_anywhere(const char *path, int flags);
int root_stat_anywhere(const char *path, struct stat *ret);
DIR *root_open_directory_anywhere(const char *path);

/* Where an open file is, as /proc shows it. 0 or a negative errno. */
int root_path_of_fd(int fd, char **ret);

/* The same file's path from outside; NULL for want of memory. */
char *root_outside(const Root *root, const char *path);

/* The other way: the part of that path that is inside; NULL if it leads elsewhere. */
const char *root_inside(const Root *root, const char *path);

#endif
