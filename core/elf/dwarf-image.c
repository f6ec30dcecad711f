/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * libdw loads and uncompresses all DWARF of a file at once, and opens further files that are named
 * in there: whatever a service's program names, devices included. It is given this image instead,
 * in which there are no such names, and only what is needed. The sizes of all sections are looked
 * at before any of them is read.
 */

#include "elf/dwarf-image.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/machine.h"
#include "elf/section.h"

#define N_MAX      5
#define NAME_SIZE  32
#define GAP        16 /* zeros behind each section: libdw may read a string past its end */
#define GNU_HEADER 12 /* "ZLIB" and the size, of .zdebug_ sections */

/* What is taken, and how large it will be. */
typedef struct Part {
        Elf_Scn *section; /* NULL: it is not there */
        const char *name;
        uint64_t size;
        bool is_compressed;
        bool is_gnu; /* .zdebug_, the older way to compress */
} Part;

typedef struct Layout {
        ElfW(Ehdr) header;
        ElfW(Shdr) sections[N_MAX + 2]; /* the first is empty, the last has the names */
        char names[N_MAX + 2][NAME_SIZE];
} Layout;

void dwarf_image_done(DwarfImage *image) {
        if (image->elf)
                (void) elf_end(image->elf);
        free(image->memory);
        *image = (DwarfImage) {};
}

static bool find_gnu(Elf *elf, Part *part) {
        char name[NAME_SIZE];
        GElf_Shdr header;
        Elf_Data *data;
        uint64_t size;

        (void) snprintf(name, sizeof(name), ".z%s", part->name + 1);
        part->section = section_find_named(elf, name, &header);
        if (!part->section || header.sh_size > DWARF_IMAGE_SIZE_MAX)
                return false;
        data = elf_rawdata(part->section, NULL);
        if (!data || !data->d_buf || data->d_size < GNU_HEADER)
                return false;
        part->size = data->d_size;
        /* It was uncompressed before. */
        if (memcmp(data->d_buf, "ZLIB", 4) != 0)
                return true;
        memcpy(&size, (const char *) data->d_buf + 4, sizeof(size));
        part->size = be64toh(size);
        part->is_gnu = true;
        return true;
}

static int find_part(Elf *elf, const char *name, Part *ret) {
        Part part = { .name = name };
        GElf_Shdr header;
        GElf_Chdr packed;

        part.section = section_find_named(elf, name, &header);
        if (!part.section) {
                if (find_gnu(elf, &part))
                        *ret = part;
                return 0;
        }
        part.size = header.sh_size;
        if (header.sh_flags & SHF_COMPRESSED) {
                if (header.sh_size > DWARF_IMAGE_SIZE_MAX)
                        return -EFBIG;
                if (!gelf_getchdr(part.section, &packed))
                        return -EBADMSG;
                part.size = packed.ch_size;
                part.is_compressed = true;
        }
        *ret = part;
        return 0;
}

static int copy_part(const Part *part, char *to) {
        Elf_Data *data;

        if (part->is_compressed && elf_compress(part->section, 0, 0) < 0)
                return -EBADMSG;
        if (part->is_gnu && elf_compress_gnu(part->section, 0, 0) < 0)
                return -EBADMSG;
        data = part->is_compressed || part->is_gnu ? elf_getdata(part->section, NULL)
                                                   : elf_rawdata(part->section, NULL);
        if (!data || !data->d_buf || data->d_size != part->size)
                return -EBADMSG;
        memcpy(to, data->d_buf, part->size);
        memset(to + part->size, 0, GAP);
        return 0;
}

static void init_layout(Layout *layout, const Part *parts, size_t n) {
        uint64_t offset = sizeof(*layout);

        layout->header = (ElfW(Ehdr)) {
                .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, MACHINE_CLASS, MACHINE_DATA,
                             EV_CURRENT },
                .e_type = ET_DYN,
                .e_machine = MACHINE_ELF,
                .e_version = EV_CURRENT,
                .e_ehsize = sizeof(layout->header),
                .e_shoff = offsetof(Layout, sections),
                .e_shentsize = sizeof(layout->sections[0]),
                .e_shnum = (uint16_t) (n + 2),
                .e_shstrndx = (uint16_t) (n + 1),
        };
        for (size_t i = 0; i < n; i++) {
                (void) snprintf(layout->names[i + 1], NAME_SIZE, "%s", parts[i].name);
                layout->sections[i + 1] = (ElfW(Shdr)) {
                        .sh_name = (uint32_t) ((i + 1) * NAME_SIZE),
                        .sh_type = SHT_PROGBITS,
                        .sh_offset = offset,
                        .sh_size = parts[i].size,
                        .sh_addralign = 1,
                };
                offset += parts[i].size + GAP;
        }
        layout->sections[n + 1] = (ElfW(Shdr)) {
                .sh_type = SHT_STRTAB,
                .sh_offset = offsetof(Layout, names),
                .sh_size = sizeof(layout->names),
                .sh_addralign = 1,
        };
}

/* Those that are there. */
static int find_parts(Elf *elf, const char *const *names, size_t n, Part *parts, size_t *ret_n,
                      uint64_t *ret_size) {
        size_t found = 0;

        *ret_size = 0;
        for (size_t i = 0; i < n; i++) {
                int r;

                parts[found] = (Part) {};
                r = find_part(elf, names[i], &parts[found]);
                if (r < 0)
                        return r;
                if (!parts[found].section && i == 0)
                        return -ENODATA;
                if (!parts[found].section)
                        continue;
                if (parts[found].size > DWARF_IMAGE_SIZE_MAX - *ret_size)
                        return -EFBIG;
                *ret_size += parts[found++].size + GAP;
        }
        *ret_n = found;
        return 0;
}

int dwarf_image_make(Elf *elf, const char *const *names, size_t n, size_t size_max,
                     DwarfImage *ret) {
        _cleanup_(dwarf_image_done) DwarfImage image = {};
        Part parts[N_MAX];
        Layout layout = {};
        uint64_t size = 0;
        size_t found = 0;
        int r;

        assert(n <= N_MAX);
        r = find_parts(elf, names, n, parts, &found, &size);
        if (r < 0)
                return r;
        if (size > size_max)
                return -EFBIG;
        init_layout(&layout, parts, found);
        image.memory = malloc(sizeof(layout) + size);
        if (!image.memory)
                return -ENOMEM;
        memcpy(image.memory, &layout, sizeof(layout));
        for (size_t i = 0; i < found && r >= 0; i++)
                r = copy_part(&parts[i], image.memory + layout.sections[i + 1].sh_offset);
        if (r < 0)
                return r;
        image.first = image.memory + sizeof(layout);
        image.first_size = parts[0].size;
        image.size = size;
        image.elf = elf_memory(image.memory, sizeof(layout) + size);
        if (!image.elf)
                return -ENOMEM;
        *ret = image;
        image = (DwarfImage) {};
        return 0;
}
