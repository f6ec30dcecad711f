/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The unwind tables of an ELF file: compilers write them for exceptions and debuggers, for every
 * function and for C too. They tell how long a function is, where a symbol does not, and for each
 * instruction where the return address lies, which nothing else does.
 *
 * The tables come from whoever made the file. libdw reads them; the extents of functions are
 * decoded here, because libdw gives them in the encoding of the file. An encoding that no compiler
 * for these machines uses counts as "not known".
 */

#include "elf/unwind.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/section.h"

#define SECTION_SIZE_MAX (UINT64_C(256) << 20)

/* Of GNU's .eh_frame: how an address is written. */
#define ENCODING_FORMAT 0x0f
#define ENCODING_PCREL  0x10
#define ENCODING_PLACE  0x70

typedef struct UnwindSection {
        const unsigned char *ident;
        Elf_Data *data;
        uint64_t address;
} UnwindSection;

static bool find_section(Elf *elf, UnwindSection *ret) {
        GElf_Shdr header;
        Elf_Scn *section;

        ret->ident = (const unsigned char *) elf_getident(elf, NULL);
        section = ret->ident ? section_find_named(elf, ".eh_frame", &header) : NULL;
        if (!section || header.sh_size > SECTION_SIZE_MAX)
                return false;
        ret->data = elf_rawdata(section, NULL);
        ret->address = header.sh_addr;
        return ret->data && ret->data->d_buf;
}

/* How the addresses of its functions are written, -1 if that is not understood. */
static int cie_encoding(const Dwarf_CIE *cie) {
        const uint8_t *data = cie->augmentation_data;
        const char *letter = cie->augmentation;
        const uint8_t *end;

        if (*letter == '\0')
                return DW_EH_PE_absptr;
        if (*letter++ != 'z' || !data)
                return -1;
        end = data + cie->augmentation_data_size;
        for (; *letter != '\0'; letter++)
                switch (*letter) {
                case 'R':
                        return data < end ? *data : -1;
                case 'L':
                        data++;
                        break;
                case 'P':
                        if (data >= end)
                                return -1;
                        data += (*data & 7) == DW_EH_PE_udata4 ? 5 : 9;
                        break;
                case 'S':
                case 'B':
                        break;
                default:
                        return -1;
                }
        return -1;
}

/* Reads a number of that format. */
static bool read_number(const uint8_t **p, const uint8_t *end, int format, uint64_t *ret) {
        int32_t narrow;
        uint64_t wide;

        switch (format) {
        case DW_EH_PE_udata4:
        case DW_EH_PE_sdata4:
                if (end - *p < (ptrdiff_t) sizeof(narrow))
                        return false;
                memcpy(&narrow, *p, sizeof(narrow));
                *p += sizeof(narrow);
                *ret = format == DW_EH_PE_udata4 ? (uint32_t) narrow : (uint64_t) (int64_t) narrow;
                return true;
        case DW_EH_PE_absptr:
        case DW_EH_PE_udata8:
        case DW_EH_PE_sdata8:
                if (end - *p < (ptrdiff_t) sizeof(wide))
                        return false;
                memcpy(&wide, *p, sizeof(wide));
                *p += sizeof(wide);
                *ret = wide;
                return true;
        default:
                return false;
        }
}

static bool fde_extent(const UnwindSection *section, const Dwarf_FDE *fde, uint64_t *ret_start,
                       uint64_t *ret_size) {
        const uint8_t *p = fde->start, *base = section->data->d_buf;
        Dwarf_CFI_Entry cie;
        Dwarf_Off next;
        int encoding;

        if (dwarf_next_cfi(section->ident, section->data, true, fde->CIE_pointer, &next, &cie) !=
                    0 ||
            !dwarf_cfi_cie_p(&cie))
                return false;
        encoding = cie_encoding(&cie.cie);
        if (encoding < 0 ||
            ((encoding & ENCODING_PLACE) != ENCODING_PCREL && (encoding & ENCODING_PLACE) != 0))
                return false;
        if (!read_number(&p, fde->end, encoding & ENCODING_FORMAT, ret_start))
                return false;
        if (encoding & ENCODING_PCREL)
                *ret_start += section->address + (uint64_t) (fde->start - base);
        return read_number(&p, fde->end, encoding & 7, ret_size);
}

bool unwind_extent_at(Elf *elf, uint64_t address, uint64_t *ret_start, uint64_t *ret_size) {
        UnwindSection section = {};
        Dwarf_Off offset = 0, next;
        Dwarf_CFI_Entry entry;
        int r;

        if (!find_section(elf, &section))
                return false;
        for (;; offset = next) {
                uint64_t start, size;

                /*
                 * -1: an entry that cannot be read; those behind it can, as long as this tells
                 * where.
                 */
                next = offset;
                r = dwarf_next_cfi(section.ident, section.data, true, offset, &next, &entry);
                if (r > 0 || next <= offset)
                        return false;
                if (r < 0 || dwarf_cfi_cie_p(&entry) ||
                    !fde_extent(&section, &entry.fde, &start, &size))
                        continue;
                if (address >= start && address - start < size) {
                        *ret_start = start;
                        *ret_size = size;
                        return true;
                }
        }
}

/* By the numbers of DWARF, and what the stack holds of a return address at the entry. */
#if defined(__x86_64__)
#define STACK_POINTER       7
#define FRAME_POINTER       6
#define RETURN_ADDRESS_SIZE 8
#elif defined(__aarch64__)
#define STACK_POINTER       31
#define FRAME_POINTER       29
#define RETURN_ADDRESS_SIZE 0
#else
#define STACK_POINTER       UINT64_MAX /* not known */
#define FRAME_POINTER       UINT64_MAX
#define RETURN_ADDRESS_SIZE 0
#endif

static Frame frame_at(Dwarf_CFI *cfi, uint64_t address) {
        Dwarf_Frame *tables = NULL;
        Frame frame = {};
        Dwarf_Op *ops;
        size_t n;

        if (dwarf_cfi_addrframe(cfi, address, &tables) != 0)
                return frame;
        if (dwarf_frame_cfa(tables, &ops, &n) == 0) {
                frame.state = FRAME_OPEN;
                if (n == 1 && ops[0].atom == DW_OP_bregx &&
                    (ops[0].number == STACK_POINTER || ops[0].number == FRAME_POINTER)) {
                        frame.is_of_frame_pointer = ops[0].number == FRAME_POINTER;
                        frame.depth = ops[0].number2 - RETURN_ADDRESS_SIZE;
                        if (frame.depth == 0 && !frame.is_of_frame_pointer)
                                frame.state = FRAME_NONE;
                }
        }
        free(tables);
        return frame;
}

void unwind_frames_at(Elf *elf, const uint64_t *addresses, size_t n, Frame *ret) {
        UnwindSection section = {};
        Dwarf_CFI *cfi = NULL;

        /*
         * By the program header, libdw would read the whole file, and libelf forget what it has
         * read before.
         */
        if (find_section(elf, &section))
                cfi = dwarf_getcfi_elf(elf);
        for (size_t i = 0; i < n; i++)
                ret[i] = cfi ? frame_at(cfi, addresses[i]) : (Frame) {};
        if (cfi)
                (void) dwarf_cfi_end(cfi);
}
