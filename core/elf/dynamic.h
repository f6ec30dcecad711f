/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_DYNAMIC_H
#define ELF_DYNAMIC_H

#include "elf/file.h"

/* What a file says to the dynamic loader. */

/*
 * Where the loader looks for the libraries of this file first: its RUNPATH, or RPATH, as it is
 * written there. *ret_is_inherited: it is an RPATH, which holds for the libraries that these need,
 * too. Returns 1, 0 (it has none), -ENOMEM.
 */
int elf_file_run_path(const ElfFile *elf, bool *ret_is_inherited, char **ret);

/* Does the loader write into its code? What runs there is not what the file has then. */
bool elf_file_has_text_relocations(const ElfFile *elf);

/*
 * Calls the visitor for each library that it needs, in their order, until it returns something else
 * than 0. Returns what it has returned last.
 */
int elf_file_visit_needed(const ElfFile *elf, int (*visitor)(const char *name, void *userdata),
                          void *userdata);

#endif
