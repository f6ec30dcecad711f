/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_KEPT_FILE_H
#define ELF_KEPT_FILE_H

#include <stdbool.h>

#include "base/root.h"
#include "elf/file.h"

/*
 * The file that was closed last, with all that was read of it, for a process that is asked about
 * one function of it after the other. Not for several threads.
 */

/* From now on one is kept; false: none is any more, and the one that was is closed. */
void kept_file_enable(bool enable);

/* Takes it if it is at that path in that tree, and still what is open there; NULL: it is not. */
ElfFile *kept_file_take(const Root *root, const char *path, int fd);

/* Returns whether it is kept: then it is not the caller's any more. */
bool kept_file_put(ElfFile *elf);

#endif
