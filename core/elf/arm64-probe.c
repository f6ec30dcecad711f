/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The kernel emulates what refers to the place that it is at (arch/arm64/kernel/probes/
 * decode-insn.c), steps most of the rest, and puts no probe on what it cannot step. It does put
 * probes between an exclusive load and its store, where each hit makes the store fail, so that the
 * program never gets out of that loop; and on loads of floating-point numbers from beside the code,
 * which would read from beside the copy. Both are refused here.
 */

#include "elf/arm64-probe.h"

#include <string.h>

#include "elf/arm64-instruction.h"
#include "elf/read.h"

/* Of exception level 1, breakpoints, system calls: all that makes the kernel come. */
static bool is_exception(uint32_t instruction) {
        return is(instruction, 0xff000000, 0xd4000000);
}

/* msr; reading such a register is nothing that changes by a step. */
static bool writes_system_register(uint32_t instruction) {
        return is(instruction, 0xfff8f01f, 0xd500401f) || is(instruction, 0xfff00000, 0xd5100000);
}

/* Branches by a register of other kinds than those that are emulated: with a key, or eret. */
static bool is_other_branch(uint32_t instruction) {
        return is(instruction, 0xfe000000, 0xd6000000) || is(instruction, 0xff000010, 0x54000010);
}

static bool is_exclusive(uint32_t instruction) {
        return is(instruction, 0x3f800000, 0x08000000);
}

/* aarch64_insn_is_steppable_hint() of the kernel. */
static bool is_refused_hint(uint32_t instruction) {
        static const uint8_t stepped[] = {
                0,              /* nop */
                7,  8,  10,     /* xpaclri, pacia1716, pacib1716 */
                24, 25, 26, 27, /* paciaz, paciasp, pacibz, pacibsp */
                32, 34, 36, 38, /* bti */
        };

        return is(instruction, 0xfffff01f, 0xd503201f) &&
               !memchr(stepped, (int) (instruction >> 5 & 127), sizeof(stepped));
}

static bool is_emulated(uint32_t instruction) {
        return is_jump(instruction) || is_call(instruction) ||
               is(instruction, 0xff000010, 0x54000000) || is_compare(instruction) ||
               is_bit_test(instruction) || is_adr(instruction) || is_adrp(instruction) ||
               is(instruction, 0xfffffc1f, 0xd65f0000) || is(instruction, 0xfffffc1f, 0xd61f0000) ||
               is(instruction, 0xfffffc1f, 0xd63f0000);
}

static bool is_refused(uint32_t instruction) {
        return is_undefined(instruction) || is_exception(instruction) ||
               writes_system_register(instruction) || is_other_branch(instruction) ||
               is_literal(instruction) || is_exclusive(instruction) || is_refused_hint(instruction);
}

/* Before the end of that code, is there a load without its store? */
static bool is_between_exclusives(const uint8_t *code, size_t size) {
        while (size >= ARM64_INSTRUCTION_SIZE) {
                uint32_t instruction;

                size -= ARM64_INSTRUCTION_SIZE;
                instruction = instruction_at(code + size);
                if (is_exclusive(instruction))
                        return is(instruction, 0x00400000, 0x00400000);
                if (is_return(instruction) || is_jump(instruction) || is_pointer_jump(instruction))
                        return false;
        }
        return false;
}

ProbeKind arm64_probe_kind(const uint8_t *code, size_t size) {
        uint32_t instruction;

        if (size < ARM64_INSTRUCTION_SIZE)
                return PROBE_UNKNOWN;
        size -= ARM64_INSTRUCTION_SIZE;
        instruction = instruction_at(code + size);
        if (is_between_exclusives(code, size))
                return PROBE_UNKNOWN;
        if (is_emulated(instruction))
                return PROBE_EMULATED;
        return is_refused(instruction) ? PROBE_UNKNOWN : PROBE_STEPPED;
}

#if defined(__aarch64__)

/* With what is before it. */
ProbeKind probe_kind_at(int fd, uint64_t offset) {
        uint8_t code[(ARM64_EXCLUSIVE_MAX + 1) * ARM64_INSTRUCTION_SIZE];
        uint64_t before = ARM64_EXCLUSIVE_MAX * ARM64_INSTRUCTION_SIZE;
        size_t size;

        if (before > offset)
                before = offset / ARM64_INSTRUCTION_SIZE * ARM64_INSTRUCTION_SIZE;
        size = (size_t) before + ARM64_INSTRUCTION_SIZE;
        return elf_read(fd, code, size, offset - before) == (ssize_t) size
                       ? arm64_probe_kind(code, size)
                       : PROBE_UNKNOWN;
}

bool probe_is_refused(int fd, uint64_t offset) {
        uint8_t code[ARM64_INSTRUCTION_SIZE];

        return elf_read(fd, code, sizeof(code), offset) == (ssize_t) sizeof(code) &&
               probe_kind_at(fd, offset) == PROBE_UNKNOWN;
}

#endif
