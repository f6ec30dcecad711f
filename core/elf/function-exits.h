/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_FUNCTION_EXITS_H
#define ELF_FUNCTION_EXITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/file.h"

/* Every instruction at which control can leave a function. */

#define FUNCTION_EXITS_MAX 1024

typedef struct FunctionExits {
        uint64_t *offsets; /* in the file, ascending; owned */
        size_t n;
        size_t n_returns; /* of these, how many are RET; the others are jumps to other functions */
        /*
         * Or places in the runtime of Go, of a function of Go only: there, its goroutine leaves the
         * thread.
         */
        size_t n_switches;
        uint64_t start;  /* where the probe of the start belongs: an offset in the file */
        char *successor; /* a function that it jumps to, NULL: none that has a name; owned */
        /*
         * Why one of them is not enough, as the end of a sentence about the function; NULL: it is
         * enough. Owned.
         */
        char *several;
} FunctionExits;

void function_exits_done(FunctionExits *exits);

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
