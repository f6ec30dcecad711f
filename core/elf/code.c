/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What is in a file, as its program sees it: code and words by their addresses, and whether its
 * data points into a piece of its code. For the latter, a word that only looks like an address
 * counts, too. And whether Go made it.
 */

#include "elf/internal.h"

#include <string.h>

#include "elf/read.h"
#include "elf/section.h"

#define SECTION_SIZE_MAX (UINT64_C(256) << 20)
#define CHUNK            65536

static bool words_point_into(const unsigned char *data, size_t size, const FunctionCode *code) {
        for (size_t i = 0; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
                uint64_t word;

                memcpy(&word, data + i, sizeof(word));
                if (function_code_has(code, word) && word != code->start &&
                    code->begins[word - code->start])
                        return true;
        }
        return false;
}

/* Returns 1, 0, -ENOMEM, -EIO. */
static int section_points_into(const ElfFile *elf, const GElf_Shdr *header,
                               const FunctionCode *code) {
        _cleanup_free_ unsigned char *chunk = malloc(CHUNK);

        if (!chunk)
                return -ENOMEM;
        for (uint64_t done = 0; done < header->sh_size; done += CHUNK) {
                uint64_t left = header->sh_size - done;
                size_t size = left < CHUNK ? (size_t) left : CHUNK;

                if (elf_read(elf->fd, chunk, size, header->sh_offset + done) != (ssize_t) size)
                        return -EIO;
                if (words_point_into(chunk, size, code))
                        return 1;
        }
        return 0;
}

/* Tables of relocations hold the addresses as every third word. */
static bool can_hold_pointers(const GElf_Shdr *header) {
        if (!(header->sh_flags & SHF_ALLOC) || (header->sh_flags & SHF_EXECINSTR))
                return false;
        return header->sh_type == SHT_PROGBITS || header->sh_type == SHT_RELA ||
               header->sh_type == SHT_INIT_ARRAY || header->sh_type == SHT_FINI_ARRAY;
}

bool elf_file_points_into(const ElfFile *elf, const FunctionCode *code) {
        bool any = false;
        Elf_Scn *scn = NULL;
        GElf_Shdr header;

        while ((scn = elf_nextscn(elf->elf, scn))) {
                if (!gelf_getshdr(scn, &header) || !can_hold_pointers(&header))
                        continue;
                any = true;
                /* What cannot be read could. */
                if (header.sh_size > SECTION_SIZE_MAX ||
                    section_points_into(elf, &header, code) != 0)
                        return true;
        }
        return !any;
}

int elf_file_read_word(const ElfFile *elf, uint64_t address, uint64_t *ret) {
        GElf_Phdr phdr;

        for (int i = 0; gelf_getphdr(elf->elf, i, &phdr); i++) {
                uint64_t word;

                if (phdr.p_type != PT_LOAD || address < phdr.p_vaddr ||
                    address - phdr.p_vaddr >= phdr.p_filesz ||
                    elf_read(elf->fd, &word, sizeof(word), segment_offset(&phdr, address)) !=
                            sizeof(word))
                        continue;
                *ret = word;
                return 0;
        }
        return -ENOEXEC;
}

int elf_file_read_code(const ElfFile *elf, uint64_t address, uint64_t size, uint8_t **ret) {
        _cleanup_free_ uint8_t *code = NULL;
        GElf_Phdr phdr;
        ssize_t n;

        if (!elf_file_find_code(elf, address, false, &phdr))
                return -ENOEXEC;
        if (size > CODE_SIZE_MAX)
                return -EFBIG;
        if (address - phdr.p_vaddr + size > phdr.p_filesz)
                return -ENOEXEC;
        code = malloc(size);
        if (!code)
                return -ENOMEM;
        n = elf_read(elf->fd, code, size, segment_offset(&phdr, address));
        if (n != (ssize_t) size)
                return n < 0 ? (int) n : -ENOEXEC;
        *ret = TAKE_PTR(code);
        return 0;
}

bool elf_file_has_go_table(const ElfFile *elf) {
        return elf->go.n > 0;
}

bool elf_file_is_go(const ElfFile *elf) {
        static const char *const sections[] = { ".gopclntab", ".data.rel.ro.gopclntab",
                                                ".go.buildinfo", ".note.go.buildid", ".go_export" };
        GElf_Shdr header;

        for (size_t i = 0; i < ELEMENTSOF(sections); i++)
                if (section_find_named(elf->elf, sections[i], &header))
                        return true;
        return false;
}
