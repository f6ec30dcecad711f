/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "elf/relocation.h"

#include "elf/section.h"

#define SECTION_SIZE_MAX (UINT64_C(64) << 20)

static bool is_relative(const GElf_Ehdr *header, const GElf_Rela *entry) {
        switch (header->e_machine) {
        case EM_X86_64:
                return GELF_R_TYPE(entry->r_info) == R_X86_64_RELATIVE;
        case EM_AARCH64:
                return GELF_R_TYPE(entry->r_info) == R_AARCH64_RELATIVE;
        default:
                return false;
        }
}

bool relocation_find_relative(Elf *elf, uint64_t address, uint64_t *ret) {
        Elf_Data *data;
        GElf_Ehdr header;
        GElf_Shdr section;

        data = section_data(section_find(elf, SHT_RELA, &section), SECTION_SIZE_MAX);
        if (!data || !gelf_getehdr(elf, &header))
                return false;
        for (int i = 0; i < (int) (data->d_size / sizeof(Elf64_Rela)); i++) {
                GElf_Rela entry;

                if (!gelf_getrela(data, i, &entry) || entry.r_offset != address)
                        continue;
                *ret = (uint64_t) entry.r_addend;
                return is_relative(&header, &entry);
        }
        return false;
}
