/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A small ELF file, laid out as the struct: everything is where its offsetof() says. Code at
 * IMAGE_ADDRESS, with endbr64 at its beginning and nothing but nops behind; the data after it.
 */

#include "elf-image.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void init_sections(ElfImage *image) {
        image->sections[SECTION_TEXT] = (Elf64_Shdr) {
                .sh_type = SHT_PROGBITS,
                .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                .sh_addr = IMAGE_ADDRESS,
                .sh_offset = offsetof(ElfImage, text),
                .sh_size = sizeof(image->text),
        };
        image->sections[SECTION_SYMTAB] = (Elf64_Shdr) {
                .sh_type = SHT_SYMTAB,
                .sh_offset = offsetof(ElfImage, symbols),
                .sh_size = sizeof(Elf64_Sym),
                .sh_link = SECTION_STRTAB,
                .sh_entsize = sizeof(Elf64_Sym),
                .sh_addralign = 8,
        };
        image->sections[SECTION_STRTAB] = (Elf64_Shdr) {
                .sh_type = SHT_STRTAB,
                .sh_offset = offsetof(ElfImage, strings),
                .sh_size = 1,
        };
}

static void init_segments(ElfImage *image) {
        image->segments[0] = (Elf64_Phdr) {
                .p_type = PT_LOAD,
                .p_flags = PF_R | PF_X,
                .p_offset = offsetof(ElfImage, text),
                .p_vaddr = IMAGE_ADDRESS,
                .p_filesz = sizeof(image->text),
                .p_memsz = sizeof(image->text),
        };
        image->segments[1] = (Elf64_Phdr) {
                .p_type = PT_LOAD,
                .p_flags = PF_R | PF_W,
                .p_offset = offsetof(ElfImage, data),
                .p_vaddr = IMAGE_ADDRESS + sizeof(image->text),
                .p_filesz = sizeof(image->data),
                .p_memsz = sizeof(image->data),
        };
        image->segments[2] = (Elf64_Phdr) {
                .p_type = PT_NOTE,
                .p_offset = offsetof(ElfImage, note),
                .p_filesz = sizeof(image->note),
                .p_align = 4,
        };
}

void elf_image_init(ElfImage *image) {
        *image = (ElfImage) {
                .header = {
                        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, MACHINE_DATA,
                                     EV_CURRENT },
                        .e_type = ET_DYN,
                        .e_machine = MACHINE_ELF,
                        .e_version = EV_CURRENT,
                        .e_ehsize = sizeof(Elf64_Ehdr),
                        .e_phoff = offsetof(ElfImage, segments),
                        .e_phentsize = sizeof(Elf64_Phdr),
                        .e_phnum = 3,
                        .e_shoff = offsetof(ElfImage, sections),
                        .e_shentsize = sizeof(Elf64_Shdr),
                        .e_shnum = N_SECTIONS,
                },
                .note = {
                        .header = { .n_namesz = 4, .n_descsz = 8, .n_type = NT_GNU_BUILD_ID },
                        .name = "GNU",
                        .id = { 0xde, 0xad, 0xbe, 0xef, 0x00, 0x11, 0x22, 0x33 },
                },
        };
        memset(image->text, 0x90, sizeof(image->text));
        memcpy(image->text, "\xf3\x0f\x1e\xfa", 4);
        init_sections(image);
        init_segments(image);
}

void elf_image_add(ElfImage *image, const char *name, unsigned char info, uint16_t section,
                   uint64_t offset, uint64_t size) {
        Elf64_Shdr *symtab = &image->sections[SECTION_SYMTAB];
        Elf64_Shdr *strtab = &image->sections[SECTION_STRTAB];
        size_t length = strlen(name) + 1;

        if (symtab->sh_size >= sizeof(image->symbols) ||
            strtab->sh_size + length > sizeof(image->strings))
                __builtin_trap();
        image->symbols[symtab->sh_size / sizeof(Elf64_Sym)] = (Elf64_Sym) {
                .st_name = (uint32_t) strtab->sh_size,
                .st_info = info,
                .st_shndx = section,
                .st_value = section == SHN_UNDEF ? 0 : IMAGE_ADDRESS + offset,
                .st_size = size,
        };
        memcpy(image->strings + strtab->sh_size, name, length);
        strtab->sh_size += length;
        symtab->sh_size += sizeof(Elf64_Sym);
}

int elf_image_to_fd(const void *image, size_t size) {
        int fd = memfd_create("elf", MFD_CLOEXEC);

        if (fd < 0 || write(fd, image, size) != (ssize_t) size)
                __builtin_trap();
        return fd;
}
