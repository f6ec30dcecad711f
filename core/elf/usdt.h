/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_USDT_H
#define ELF_USDT_H

#include <stdint.h>

#include "elf/file.h"

/*
 * USDT probes: places that the program's author has marked and named (sys/sdt.h), each with a note
 * in the section .note.stapsdt. Compilers copy code, so one probe can be at several places.
 */

/* A USDT probe at one of its places; strings belong to the file. */
typedef struct UsdtNote {
        const char *provider;
        const char *name;
        const char *arguments; /* where they lie, as for an assembler; "": there are none */
        uint64_t offset;       /* in the file */
        uint64_t semaphore;    /* its address; 0: there is none */
} UsdtNote;

/*
 * Calls visit for each, in the order of the file, until it returns other than 0, and returns that,
 * else 0. Left out are those that are not in code, and those whose names cannot be shown.
 */
int elf_file_visit_usdt(const ElfFile *elf, int (*visit)(const UsdtNote *note, void *userdata),
                        void *userdata);

/* As elf_file_resolve() does of these. */
int elf_file_resolve_usdt(const ElfFile *elf, const char *site, ElfSite *ret, char **ret_error);

#endif
