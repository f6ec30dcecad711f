/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUGGEST_MAPPING_H
#define SUGGEST_MAPPING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "binding/file.h"
#include "elf/file.h"

/* What became of the file at a path since a process has mapped it. */
typedef enum FileFate {
        FILE_KEPT,
        FILE_REPLACED, /* another one is there */
        FILE_DELETED,  /* none is there */
} FileFate;

/* A file that a process has mapped. */
typedef struct Mapping {
        pid_t pid;
        uint64_t begin, end; /* of one piece of it */
        MappedIdentity identity;
        char *name; /* in /proc/PID/maps */
} Mapping;

void mapping_done(Mapping *mapping);

/*
 * The one that begins at that address. Returns 0, -ENOENT if no file does, -ENOMEM, or what
 * opening /proc/PID/maps fails with.
 */
int mapping_find(pid_t pid, uint64_t begin, Mapping *ret);

/*
 * Opens the file that is mapped, and none other. Its name is the path at which the process sees it,
 * or saw it. Returns 0, -ENOMEM, or -ENOENT if it cannot be opened or is not ELF.
 */
int mapping_open(const Mapping *mapping, ElfFile **ret, FileFate *ret_fate);

/* Is it the program that the process runs? */
bool mapping_is_program(const Mapping *mapping);

/* Takes the " (deleted)" away that the kernel adds to a path. */
void path_strip_deleted(char *path);

#endif
