/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_RECENT_H
#define ELF_RECENT_H

#include <stdbool.h>

/*
 * The file that was read last, with what was read of it, in a process that is asked about many
 * places of one file: elf_file_free() keeps it for a moment, and elf_file_open_in() goes on with
 * it, if the path leads to the same file, as it was last written. Other processes keep none. Not
 * for threads.
 */

/* From now on. */
void elf_recent_begin(void);

/* Is there one? */
bool elf_recent_is_there(void);

/* It is closed: a file that is open keeps its file system busy. */
void elf_recent_drop(void);

#endif
