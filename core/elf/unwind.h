/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_UNWIND_H
#define ELF_UNWIND_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/* What .eh_frame tells about functions. It stays in files that were stripped of their symbols. */

typedef enum FrameState {
        FRAME_UNKNOWN,
        FRAME_NONE, /* as at the entry of a function: a return is all that is left to do */
        FRAME_OPEN, /* something lies above it */
} FrameState;

/* Where the function at that address begins, and its size. False if .eh_frame does not tell. */
bool unwind_extent_at(Elf *elf, uint64_t address, uint64_t *ret_start, uint64_t *ret_size);

typedef struct Frame {
        FrameState state;
        uint64_t depth; /* of the stack pointer below that of the entry; 0: none, or not known */
        bool is_of_frame_pointer; /* that is as deep, and of the stack pointer it is not known */
} Frame;

/*
 * The stack before the instructions at these addresses: FRAME_UNKNOWN where nothing tells.
 */
void unwind_frames_at(Elf *elf, const uint64_t *addresses, size_t n, Frame *ret);

#endif
