/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Writes all of it, also where that has to be waited for. Returns 0 or a negative errno. */
int write_all(int fd, const char *text, size_t size);

/* As readlink(), in memory that the caller frees. Returns 0 or a negative errno. */
int read_link(const char *path, char **ret);

/*
 * Makes the directories above path that are missing, for their owner only: that of a user's
 * configuration is. Returns 0 or a negative errno.
 */
int make_parents(const char *path);

/* Are both of the same file, whatever was written to it? */
static inline bool stat_is_of_same_file(const struct stat *a, const struct stat *b) {
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

#endif
