/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_IMAGE_H
#define ELF_IMAGE_H

/* A small ELF file made by hand, for tests that break it in one place. */

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/machine.h"

enum {
        SECTION_NULL,
        SECTION_TEXT,
        SECTION_SYMTAB,
        SECTION_STRTAB,
        N_SECTIONS,
};

#define IMAGE_N_SYMBOLS 12
#define IMAGE_ADDRESS   0x400000

typedef struct ElfImage {
        Elf64_Ehdr header;
        Elf64_Phdr segments[3]; /* code, data, build-id */
        Elf64_Shdr sections[N_SECTIONS];
        struct {
                Elf64_Nhdr header;
                char name[4];
                unsigned char id[8];
        } note;
        uint32_t padding;
        unsigned char text[0x100];
        unsigned char data[0x40];
        Elf64_Sym symbols[IMAGE_N_SYMBOLS];
        char strings[256];
} ElfImage;

void elf_image_init(ElfImage *image);

/* Adds a symbol at an offset in the text (in any section but SHN_UNDEF the same). */
void elf_image_add(ElfImage *image, const char *name, unsigned char info, uint16_t section,
                   uint64_t offset, uint64_t size);

/* A file without a name that holds the bytes. */
int elf_image_to_fd(const void *image, size_t size);

#endif
