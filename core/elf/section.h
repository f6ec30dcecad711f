/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_SECTION_H
#define ELF_SECTION_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sections of an ELF file, whose headers may promise anything. All results are owned by the Elf. */

/* The first one of that type, or of that name; NULL: there is none. */
Elf_Scn *section_find(Elf *elf, uint32_t type, GElf_Shdr *ret);
Elf_Scn *section_find_named(Elf *elf, const char *name, GElf_Shdr *ret);

bool section_contains(const GElf_Shdr *header, uint64_t address);

/* Is there code at that address, by the headers? Segments can have more in them than that. */
bool section_has_code(Elf *elf, uint64_t address);

/*
 * What is in it, converted for this machine; NULL if that is nothing, not readable, or more than
 * size_max bytes.
 */
Elf_Data *section_data(Elf_Scn *section, uint64_t size_max);

/* A string table: as data, cut behind its last NUL, so that no string runs past its end. */
bool section_strings(Elf *elf, size_t index, uint64_t size_max, const char **ret, size_t *ret_size);

#endif
