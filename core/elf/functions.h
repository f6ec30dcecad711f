/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_FUNCTIONS_H
#define ELF_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/file.h"

/* What elf_file_resolve() can find by a name: functions, USDT probes, and marks. */

typedef struct ElfFunction {
        char *name; /* with its version, if that is not the default one; "usdt:..."; "Mark=..." */
        char *arguments; /* of a USDT probe, where that one has them, as its note says; or NULL */
        uint64_t offset; /* in the file: where its probe goes, or the first of them */
        uint64_t size;   /* 0: not known */
        bool ambiguous;  /* several have this name: it takes the offset to name one of them */
        bool is_usdt;
        bool is_mark;    /* the same, in the place of the two that are its begin and its end */
        bool is_fetched; /* only the finder of elf_file_set_debug_finder() knows this name */
} ElfFunction;

typedef struct ElfFunctions {
        ElfFunction *items; /* by name */
        size_t n;
        size_t n_allocated;
        bool is_stripped; /* those are only the functions that it exports */
} ElfFunctions;

/*
 * Lists the functions of a file, or of its separate debug file, its USDT probes and its marks.
 * Names that cannot be shown are left out. Returns 0 or -ENOMEM.
 */
int elf_file_list_functions(ElfFile *elf, ElfFunctions *ret);
void elf_functions_done(ElfFunctions *functions);

#endif
