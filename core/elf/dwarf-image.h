/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_DWARF_IMAGE_H
#define ELF_DWARF_IMAGE_H

#include <libelf.h>
#include <stddef.h>

/* An ELF file in memory that has nothing but a few sections of another one, uncompressed. */

typedef struct DwarfImage {
        Elf *elf;
        char *memory;
        const char *first; /* what is in the first section; in memory */
        size_t first_size;
} DwarfImage;

/*
 * Takes the sections of these names (".debug_line"); those that are not there are left out. Returns
 * 0, -ENODATA (the first one is not there), -EFBIG, -EBADMSG (it cannot be uncompressed, or is not
 * in the file), -ENOMEM.
 */
int dwarf_image_make(Elf *elf, const char *const *names, size_t n, DwarfImage *ret);
void dwarf_image_done(DwarfImage *image);

#endif
