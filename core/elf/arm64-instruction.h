/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_ARM64_INSTRUCTION_H
#define ELF_ARM64_INSTRUCTION_H

/*
 * All instructions of arm64 have four bytes, and the few that matter are told by a mask each (Arm
 * Architecture Reference Manual, "A64 instruction set encoding"), so that no disassembler is
 * needed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARM64_INSTRUCTION_SIZE 4
#define ARM64_NOP              0xd503201f

static inline bool is(uint32_t instruction, uint32_t mask, uint32_t value) {
        return (instruction & mask) == value;
}

static inline uint32_t instruction_at(const uint8_t *code) {
        return (uint32_t) code[0] | (uint32_t) code[1] << 8 | (uint32_t) code[2] << 16 |
               (uint32_t) code[3] << 24;
}

static inline unsigned destination(uint32_t instruction) {
        return instruction & 31;
}

static inline unsigned first_source(uint32_t instruction) {
        return instruction >> 5 & 31;
}

static inline unsigned second_source(uint32_t instruction) {
        return instruction >> 16 & 31;
}

/* The signed number of that many bits, of which the lowest is that one. */
static inline int64_t number(uint32_t instruction, unsigned lowest, unsigned bits) {
        return (int64_t) ((uint64_t) instruction << (64 - lowest - bits)) >> (64 - bits);
}

static inline bool is_jump(uint32_t instruction) {
        return is(instruction, 0xfc000000, 0x14000000);
}

static inline bool is_call(uint32_t instruction) {
        return is(instruction, 0xfc000000, 0x94000000);
}

/* b.cond and bc.cond */
static inline bool is_condition(uint32_t instruction) {
        return is(instruction, 0xff000000, 0x54000000);
}

/* cbz, cbnz */
static inline bool is_compare(uint32_t instruction) {
        return is(instruction, 0x7e000000, 0x34000000);
}

/* tbz, tbnz */
static inline bool is_bit_test(uint32_t instruction) {
        return is(instruction, 0x7e000000, 0x36000000);
}

/* ret; retaa, retab */
static inline bool is_return(uint32_t instruction) {
        return is(instruction, 0xfffffc1f, 0xd65f0000) || is(instruction, 0xfffffbff, 0xd65f0bff);
}

/* br; braa and the like */
static inline bool is_pointer_jump(uint32_t instruction) {
        return is(instruction, 0xfffffc1f, 0xd61f0000) || is(instruction, 0xfefff800, 0xd61f0800);
}

/* blr; blraa and the like */
static inline bool is_pointer_call(uint32_t instruction) {
        return is(instruction, 0xfffffc1f, 0xd63f0000) || is(instruction, 0xfefff800, 0xd63f0800);
}

static inline bool is_adr(uint32_t instruction) {
        return is(instruction, 0x9f000000, 0x10000000);
}

static inline bool is_adrp(uint32_t instruction) {
        return is(instruction, 0x9f000000, 0x90000000);
}

/* udf: nobody writes it, but much data looks like it. */
static inline bool is_undefined(uint32_t instruction) {
        return is(instruction, 0xffff0000, 0);
}

static inline bool is_breakpoint(uint32_t instruction) {
        return is(instruction, 0xffe0001f, 0xd4200000);
}

/* ldr, ldrsw and prfm of what lies at a distance from the instruction */
static inline bool is_literal(uint32_t instruction) {
        return is(instruction, 0x3b000000, 0x18000000);
}

/* Of a register, by a register. */
static inline bool is_indexed_load(uint32_t instruction) {
        return is(instruction, 0x3b200c00, 0x38200800) && (instruction >> 22 & 3) != 0;
}

/* "add x0, x1, w2, sxtw #2" and "add x0, x1, x2, lsl #2" */
static inline bool is_sum(uint32_t instruction) {
        return is(instruction, 0xffe00000, 0x8b200000) || is(instruction, 0xff200000, 0x8b000000);
}

/* "add x0, x1, #16" */
static inline bool is_sum_with_number(uint32_t instruction) {
        return is(instruction, 0xff800000, 0x91000000);
}

#endif
