/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_USDT_H
#define ELF_USDT_H

#include <stdint.h>

#include "elf/argument.h"
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

/* Do the notes of any of its places list arguments? Returns 1, 0, or a negative errno. */
int elf_file_usdt_has_arguments(const ElfFile *elf, const char *site);

/*
 * Finds where the argument of that number lies at the places of a site that was resolved. Fails as
 * elf_argument_parse(), or with -EOPNOTSUPP if it lies in too many ways, with a sentence in
 * *ret_error.
 */
int elf_file_read_usdt_argument(const ElfFile *elf, const char *site, unsigned number,
                                const ElfSite *resolved, ElfArgumentPlaces *ret, char **ret_error);

#endif
