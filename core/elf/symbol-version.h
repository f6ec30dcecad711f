/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_SYMBOL_VERSION_H
#define ELF_SYMBOL_VERSION_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>

/* The versions of the symbols that a file exports ("GLIBC_2.2.5"). */

typedef struct SymbolVersions {
        Elf_Data *numbers;     /* of each symbol; owned by the Elf, as the others. NULL: none */
        Elf_Data *definitions; /* what they are called; NULL: nobody knows */
        const char *strings;
        size_t strings_size;
} SymbolVersions;

void symbol_versions_load(Elf *elf, SymbolVersions *ret);

/*
 * The name of the version of that symbol, owned by the Elf; NULL: it has none.
 * *ret_is_old: the linker takes it for old programs only.
 */
const char *symbol_versions_get(const SymbolVersions *versions, int symbol, bool *ret_is_old);

/* The same without the name. */
bool symbol_versions_is_old(const SymbolVersions *versions, int symbol);

#endif
