/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_FUNCTION_EXITS_H
#define ELF_FUNCTION_EXITS_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/exits.h"
#include "elf/file.h"

/*
 * Finds the ways out of the function that begins at that offset. Returns 0, -ENOMEM, or -EOPNOTSUPP
 * with the end of a sentence about the function in *ret_reason (static).
 */
int function_find_exits(const ElfFile *elf, uint64_t entry, FunctionExits *ret,
                        const char **ret_reason);

/* Why the ways out of a function are of no use. */
typedef enum RefusalKind {
        REFUSED_UNKNOWN, /* they are not all known, or too many */
        REFUSED_NO_EXIT, /* there are none */
        REFUSED_RETURN,  /* there is nothing else but one of them, a return */
        REFUSED_JUMP,    /* the same, a jump to another function */
} RefusalKind;

typedef struct FunctionRefusal {
        RefusalKind kind;
        const char *reason; /* the end of a sentence about the function; static */
        char *successor;    /* the other function, NULL: none that has a name; owned */
} FunctionRefusal;

void function_refusal_done(FunctionRefusal *refusal);

/* As function_find_exits(), and says more with -EOPNOTSUPP. *ret_refusal is untouched otherwise. */
int function_judge_exits(const ElfFile *elf, uint64_t entry, FunctionExits *ret,
                         FunctionRefusal *ret_refusal);

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

/* Is it where a function begins: its first instruction, or elf_file_place_entry() of it? */
bool function_is_entry(const ElfFile *elf, uint64_t offset, uint64_t *ret_entry);

#endif
