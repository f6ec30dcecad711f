/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * libelf allocates as much as a section's header says, so each is asked for its size before libelf
 * is.
 */

#include "elf/section.h"

#include <string.h>

Elf_Scn *section_find(Elf *elf, uint32_t type, GElf_Shdr *ret) {
        Elf_Scn *section = NULL;

        while ((section = elf_nextscn(elf, section)))
                if (gelf_getshdr(section, ret) && ret->sh_type == type)
                        return section;
        return NULL;
}

Elf_Scn *section_find_named(Elf *elf, const char *name, GElf_Shdr *ret) {
        Elf_Scn *section = NULL;
        size_t names;

        if (elf_getshdrstrndx(elf, &names) < 0)
                return NULL;
        while ((section = elf_nextscn(elf, section))) {
                const char *found = NULL;

                if (gelf_getshdr(section, ret) && ret->sh_type != SHT_NOBITS)
                        found = elf_strptr(elf, names, ret->sh_name);
                if (found && strcmp(found, name) == 0)
                        return section;
        }
        return NULL;
}

bool section_contains(const GElf_Shdr *header, uint64_t address) {
        return address >= header->sh_addr && address - header->sh_addr < header->sh_size;
}

bool section_has_code(Elf *elf, uint64_t address) {
        Elf_Scn *section = NULL;
        GElf_Shdr header;

        while ((section = elf_nextscn(elf, section)))
                if (gelf_getshdr(section, &header) && (header.sh_flags & SHF_EXECINSTR) &&
                    section_contains(&header, address))
                        return true;
        return false;
}

Elf_Data *section_data(Elf_Scn *section, uint64_t size_max) {
        GElf_Shdr header;
        Elf_Data *data;

        if (!section || !gelf_getshdr(section, &header) || header.sh_size > size_max)
                return NULL;
        data = elf_getdata(section, NULL);
        return data && data->d_buf && data->d_size > 0 ? data : NULL;
}

bool section_strings(Elf *elf, size_t index, uint64_t size_max, const char **ret,
                     size_t *ret_size) {
        Elf_Data *data = section_data(elf_getscn(elf, index), size_max);
        const char *end;

        end = data ? memrchr(data->d_buf, '\0', data->d_size) : NULL;
        if (!end)
                return false;
        *ret = data->d_buf;
        *ret_size = (size_t) (end - *ret) + 1;
        return true;
}
