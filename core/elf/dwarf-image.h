/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_DWARF_IMAGE_H
#define ELF_DWARF_IMAGE_H

#include <libelf.h>
#include <stddef.h>

/* An ELF file in memory that has nothing but a few sections of another one, uncompressed. */

#define DWARF_IMAGE_SIZE_MAX ((size_t) 256 << 20) /* of all that is looked at together */

typedef struct DwarfImage {
        Elf *elf;
        char *memory;
        size_t size;
        const char *first; /* what is in the first section; in memory */
        size_t first_size;
} DwarfImage;

/*
 * Takes the sections of these names (".debug_line"); those that are not there are left out. Returns
 * 0, -ENODATA (the first one is not there), -EFBIG (larger than size_max), -EBADMSG (it cannot be
 * uncompressed, or is not in the file), -ENOMEM.
 */
int dwarf_image_make(Elf *elf, const char *const *names, size_t n, size_t size_max,
                     DwarfImage *ret);
void dwarf_image_done(DwarfImage *image);

#endif
