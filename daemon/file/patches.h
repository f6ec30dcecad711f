/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILE_PATCHES_H
#define FILE_PATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "binding/binding.h"

/* A process has other code at a place than its file has. */
typedef struct Patch {
        uint32_t pid;
        uint64_t offset;  /* of the place, in the file */
        bool is_outdated; /* the process is older than what is in the file */
} Patch;

/*
 * Looks for one of the places of a resolved binding in the processes of its unit, as far as they
 * can be looked at; file_fd is its file. Returns 1, 0 if there is none, or a negative errno.
 */
int patches_find(const Binding *binding, int file_fd, Patch *ret);

#endif
