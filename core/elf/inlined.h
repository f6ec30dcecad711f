/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_INLINED_H
#define ELF_INLINED_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/file.h"

/* Copies of a function that compilers have put into others, where no probe on it is ever hit. */

typedef struct InlinedCopies {
        bool is_known;    /* there is DWARF that tells */
        bool is_complete; /* n are all; else not all of it could be read */
        uint64_t n;
} InlinedCopies;

/*
 * Counts those of the function that the offset lies in, by the DWARF of the file or of its debug
 * file, until that time of CLOCK_MONOTONIC. Returns 0, also if nothing is known, or -ENOMEM.
 */
int inlined_copies_count(ElfFile *elf, uint64_t offset, uint64_t deadline_ns, InlinedCopies *ret);

/*
 * Is there a function of that name, as it is in the source, that was put into others? Looks until
 * the same time at the same DWARF. False also if that cannot be known.
 */
bool inlined_name_find(ElfFile *elf, const char *name, size_t length, uint64_t deadline_ns);

#endif
