/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_DECODER_H
#define ELF_DECODER_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stdint.h>

/* Takes code apart, one instruction after the other. It stays where it is. */
typedef struct Decoder {
        cs_insn instruction; /* the last one */
        cs_detail detail;    /* its operands */
} Decoder;

/*
 * Returns 0, -ENOMEM, or -EOPNOTSUPP with the end of a sentence about the code in *ret_reason
 * (static). Not for several threads at once.
 */
int decoder_init(Decoder *decoder, const char **ret_reason);

/* As cs_disasm_iter(), into decoder->instruction. Not after decoder_init() failed. */
bool decoder_next(Decoder *decoder, const uint8_t **code, size_t *size, uint64_t *address);

/*
 * The instruction at that offset in a file, as it is written for the assembler: "push rbp"; the
 * caller's. NULL: it cannot be decoded, or for want of memory. The same goes for threads.
 */
char *decoder_describe(int fd, uint64_t offset);

/* Is the last instruction one of these? */
bool decoder_is_in_group(const Decoder *decoder, cs_group_type group);

#endif
