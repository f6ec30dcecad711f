/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_STACK_GUARD_H
#define ELF_STACK_GUARD_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Compilers that protect the stack (-fstack-protector) end a function with a look at its guard,
 * next to the return addresses: a comparison, a branch that is taken only if the program is to be
 * aborted, and from there straight to the return.
 */
typedef struct StackGuard {
        x86_reg loaded;   /* has the other copy, by the last instruction; invalid: none has */
        bool is_compared; /* the two, by the last instruction */
        uint64_t branch;  /* where that was decided, if since then all went straight; 0: nowhere */
} StackGuard;

/* Shows it the next instruction of a function, in their order. */
void stack_guard_watch(StackGuard *guard, const cs_insn *instruction);

#endif
