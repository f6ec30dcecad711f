/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_LINE_TABLE_H
#define ELF_LINE_TABLE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* From a line of a source file to the code that was made of it: DWARF's .debug_line. */

#define LINE_PLACES_MAX 4096

typedef struct LinePlace {
        uint64_t address;
        bool is_empty; /* no instruction there is of this line alone */
} LinePlace;

typedef struct LinePlaces {
        LinePlace *items; /* where statements of it begin, by their addresses; owned */
        size_t n;
        bool has_file;          /* a file of that name has code at all */
        char *file;             /* the first one in which the line has code; owned */
        char *other_file;       /* the second one; the same */
        unsigned before, after; /* the nearest lines that have code; 0: none */
        char *near_files;       /* names like that of the file, as a list; "": none; owned */
} LinePlaces;

/*
 * Looks for the code of a line. file: the end of a path, from a '/' on or as a whole. Only
 * addresses that is_code() accepts count: linkers leave those of functions that they have thrown
 * away.
 *
 * Returns 0, also if there is no such file or no such line, or a negative errno: -ENODATA (no
 * .debug_line), -EFBIG (larger than it may be), -EBADMSG (damaged), -E2BIG (too many places),
 * -ENOMEM.
 */
int line_table_find(Elf *elf, const char *file, unsigned line,
                    bool (*is_code)(uint64_t address, void *userdata), void *userdata,
                    LinePlaces *ret);
void line_places_done(LinePlaces *places);

#endif
