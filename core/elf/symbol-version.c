/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * .gnu.version has a number for each symbol of .dynsym, with a bit for those that are not the
 * default version of their name. .gnu.version_d has the names of the numbers, as a list in which
 * each entry tells where the next one is: only entries that lie behind are followed.
 */

#include "elf/symbol-version.h"

#include "elf/section.h"

#define SECTION_SIZE_MAX (UINT64_C(64) << 20)
#define HIDDEN           0x8000
#define NUMBER           0x7fff

void symbol_versions_load(Elf *elf, SymbolVersions *ret) {
        SymbolVersions versions = {};
        GElf_Shdr header;

        versions.numbers =
                section_data(section_find(elf, SHT_GNU_versym, &header), SECTION_SIZE_MAX);
        if (versions.numbers && versions.numbers->d_type != ELF_T_HALF)
                versions.numbers = NULL;
        versions.definitions =
                section_data(section_find(elf, SHT_GNU_verdef, &header), SECTION_SIZE_MAX);
        if (versions.definitions && (versions.definitions->d_type != ELF_T_VDEF ||
                                     !section_strings(elf, header.sh_link, SECTION_SIZE_MAX,
                                                      &versions.strings, &versions.strings_size)))
                versions.definitions = NULL;
        *ret = versions;
}

static const char *find_name(const SymbolVersions *versions, unsigned number) {
        GElf_Verdef definition;
        GElf_Verdaux name;
        int64_t offset = 0;

        while (versions->definitions && offset <= INT32_MAX &&
               gelf_getverdef(versions->definitions, (int) offset, &definition)) {
                if ((definition.vd_ndx & NUMBER) == number)
                        return offset + definition.vd_aux <= INT32_MAX &&
                                               gelf_getverdaux(versions->definitions,
                                                               (int) (offset + definition.vd_aux),
                                                               &name) &&
                                               name.vda_name < versions->strings_size
                                       ? versions->strings + name.vda_name
                                       : NULL;
                if (definition.vd_next == 0)
                        return NULL;
                offset += definition.vd_next;
        }
        return NULL;
}

const char *symbol_versions_get(const SymbolVersions *versions, int symbol, bool *ret_is_old) {
        GElf_Versym version;

        if (!versions->numbers || !gelf_getversym(versions->numbers, symbol, &version))
                return NULL;
        *ret_is_old = version & HIDDEN;
        return (version & NUMBER) > VER_NDX_GLOBAL ? find_name(versions, version & NUMBER) : NULL;
}

bool symbol_versions_is_old(const SymbolVersions *versions, int symbol) {
        GElf_Versym version;

        return versions->numbers && gelf_getversym(versions->numbers, symbol, &version) &&
               (version & HIDDEN);
}
