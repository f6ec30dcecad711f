/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_FUNCTION_EXITS_H
#define ELF_FUNCTION_EXITS_H

#include <stdint.h>

#include "elf/exits.h"
#include "elf/file.h"

/*
 * Finds the ways out of the function that begins at that offset. Returns 0, -ENOMEM, or -EOPNOTSUPP
 * with the end of a sentence about the function in *ret_reason (static).
 */
int function_find_exits(const ElfFile *elf, uint64_t entry, FunctionExits *ret,
                        const char **ret_reason);

/*
 * Is the offset the beginning of an instruction? Returns 1, 0 with the offset where the instruction
 * that it is in begins, -ESRCH (nothing tells where its function begins), -ENOMEM, or -EOPNOTSUPP
 * as above.
 */
int function_check_boundary(const ElfFile *elf, uint64_t offset, uint64_t *ret_begin,
                            const char **ret_reason);

/*
 * Where the function begins that the offset lies in: an offset in the file. -ESRCH: nothing tells.
 */
int function_find_entry(const ElfFile *elf, uint64_t offset, uint64_t *ret_entry);

#endif
