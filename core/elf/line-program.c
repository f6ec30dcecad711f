/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * DWARF, versions 2 to 5, section "Line Number Information". What one reader takes for the length
 * of an instruction, and another one does not look at, is refused if it is not what both expect.
 */

#include "elf/line-program.h"

#include <dwarf.h>
#include <stdint.h>
#include <string.h>

#define ADDRESS_SIZE 8

typedef struct Cursor {
        const uint8_t *at;
        size_t left;
} Cursor;

static bool skip(Cursor *c, uint64_t n) {
        if (n > c->left)
                return false;
        c->at += n;
        c->left -= n;
        return true;
}

static bool take(Cursor *c, void *ret, size_t n) {
        const uint8_t *at = c->at;

        if (!skip(c, n))
                return false;
        memcpy(ret, at, n);
        return true;
}

static bool skip_leb128(Cursor *c) {
        uint8_t byte;

        do
                if (!take(c, &byte, sizeof(byte)))
                        return false;
        while (byte & 0x80);
        return true;
}

/* A length, of 4 or 8 bytes. */
static bool take_length(Cursor *c, bool is_long, uint64_t *ret) {
        *ret = 0; /* the file is of a little-endian machine, as this one */
        return take(c, ret, is_long ? sizeof(uint64_t) : sizeof(uint32_t));
}

/* What the program's instructions look like. */
typedef struct Header {
        uint8_t opcode_base;
        uint8_t n_arguments[UINT8_MAX];
} Header;

/* *c is at the program then, and has no more than that. */
static bool take_header(Cursor *c, Header *ret) {
        bool is_long;
        uint64_t length;
        uint16_t version;
        Cursor fields;

        if (!take_length(c, false, &length))
                return false;
        is_long = length == UINT32_MAX;
        if ((is_long && !take_length(c, true, &length)) || length > c->left)
                return false;
        c->left = length;
        if (!take(c, &version, sizeof(version)) || version < 2 || version > 5 ||
            (version == 5 && !skip(c, 2)) || !take_length(c, is_long, &length) || length > c->left)
                return false;
        fields = (Cursor) { c->at, length };
        /* The least length and most operations of an instruction, is_stmt, line base and range. */
        return skip(c, length) && skip(&fields, version >= 4 ? 5 : 4) &&
               take(&fields, &ret->opcode_base, 1) && ret->opcode_base > 0 &&
               take(&fields, ret->n_arguments + 1, ret->opcode_base - 1U);
}

static bool skip_extended(Cursor *c) {
        uint8_t length, opcode;
        Cursor all;

        if (!take(c, &length, 1) || length == 0 || length >= 0x80)
                return false;
        all = (Cursor) { c->at, length };
        if (!skip(c, length) || !take(&all, &opcode, 1))
                return false;
        switch (opcode) {
        case DW_LNE_end_sequence:
                return all.left == 0;
        case DW_LNE_set_address:
                return all.left == ADDRESS_SIZE;
        case DW_LNE_set_discriminator:
                return skip_leb128(&all) && all.left == 0;
        default:
                /* Those of vendors are read by some, and not by others. */
                return false;
        }
}

static bool skip_standard(Cursor *c, const Header *header, uint8_t opcode) {
        /* Of the others, none. */
        static const uint8_t n_arguments[DW_LNS_set_isa + 1] = {
                [DW_LNS_advance_pc] = 1, [DW_LNS_advance_line] = 1,     [DW_LNS_set_file] = 1,
                [DW_LNS_set_column] = 1, [DW_LNS_fixed_advance_pc] = 1, [DW_LNS_set_isa] = 1,
        };
        uint8_t n = header->n_arguments[opcode];

        if (opcode < sizeof(n_arguments) && n != n_arguments[opcode])
                return false;
        if (opcode == DW_LNS_fixed_advance_pc)
                return skip(c, sizeof(uint16_t));
        while (n-- > 0)
                if (!skip_leb128(c))
                        return false;
        return true;
}

bool line_program_is_plain(const void *table, size_t size) {
        Cursor c = { table, size };
        Header header;
        uint8_t opcode;

        if (!take_header(&c, &header))
                return false;
        while (take(&c, &opcode, 1))
                if (opcode < header.opcode_base &&
                    !(opcode == 0 ? skip_extended(&c) : skip_standard(&c, &header, opcode)))
                        return false;
        return true;
}
