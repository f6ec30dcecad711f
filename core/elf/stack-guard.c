/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The guard's other copy is a word of the thread, at %fs:0x28 by the ABI of libc. GCC compares with
 * it where it lies ("sub %fs:0x28, %rdx"), clang loads it first ("mov %fs:0x28, %rax; cmp 8(%rsp),
 * %rax").
 */

#include "elf/stack-guard.h"

#include <stddef.h>

#define GUARD_OFFSET 0x28

static bool is_guard(const cs_x86_op *op) {
        return op->type == X86_OP_MEM && op->mem.segment == X86_REG_FS &&
               op->mem.base == X86_REG_INVALID && op->mem.index == X86_REG_INVALID &&
               op->mem.disp == GUARD_OFFSET;
}

/* Returns where it is then. */
static x86_reg load_of_guard(const cs_insn *instruction) {
        const cs_x86 *x86 = &instruction->detail->x86;

        return instruction->id == X86_INS_MOV && x86->op_count == 2 && is_guard(&x86->operands[1])
                       ? x86->operands[0].reg
                       : X86_REG_INVALID;
}

static bool is_in(const cs_x86_op *op, x86_reg reg) {
        return reg != X86_REG_INVALID && op->type == X86_OP_REG && op->reg == reg;
}

static bool compares_guard(const cs_insn *instruction, x86_reg loaded) {
        const cs_x86 *x86 = &instruction->detail->x86;

        if (x86->op_count != 2)
                return false;
        if (instruction->id == X86_INS_CMP &&
            (is_in(&x86->operands[0], loaded) || is_in(&x86->operands[1], loaded)))
                return true;
        return (instruction->id == X86_INS_SUB || instruction->id == X86_INS_XOR ||
                instruction->id == X86_INS_CMP) &&
               is_guard(&x86->operands[1]);
}

static bool goes_elsewhere(const cs_insn *instruction) {
        for (size_t i = 0; i < instruction->detail->groups_count; i++)
                switch (instruction->detail->groups[i]) {
                case CS_GRP_JUMP:
                case CS_GRP_CALL:
                case CS_GRP_RET:
                case CS_GRP_INT:
                        return true;
                default:
                        break;
                }
        return false;
}

void stack_guard_watch(StackGuard *guard, const cs_insn *instruction) {
        StackGuard before = *guard;

        *guard = (StackGuard) {
                .loaded = load_of_guard(instruction),
                .is_compared = compares_guard(instruction, before.loaded),
        };
        if (before.is_compared && instruction->id == X86_INS_JNE)
                guard->branch = instruction->address;
        else if (!goes_elsewhere(instruction))
                guard->branch = before.branch;
}
