/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_FUNCTION_CODE_H
#define ELF_FUNCTION_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* One piece of code, decoded: where its instructions begin, and where control can leave it. */

typedef enum LeaveKind {
        LEAVE_RETURN,
        LEAVE_JUMP,    /* to target, which is outside or the beginning */
        LEAVE_BRANCH,  /* the same, or on to the next instruction */
        LEAVE_POINTER, /* to a place that is known when it runs */
        LEAVE_SWITCH,  /* the same, and by a table of distances, as compilers make for a switch */
        LEAVE_TABLE,   /* the same, by a table of addresses that begins at target */
} LeaveKind;

typedef struct Leave {
        LeaveKind kind;
        uint64_t address;
        uint64_t target;
        bool is_indexed; /* LEAVE_POINTER: through one of several words in memory */
        /*
         * LEAVE_RETURN: the branch that looks at the guard of the stack before it, which nothing
         * passes that does not go on to the return, and without which nothing gets there; 0: none.
         */
        uint64_t guard;
} Leave;

typedef struct FunctionCode {
        uint64_t start;
        size_t size;
        uint8_t *begins; /* for each byte: does an instruction begin there? */
        Leave *leaves;   /* in the order of their addresses */
        size_t n_leaves;
        bool calls_itself;
        bool jumps_to_second;     /* to its second instruction */
        bool takes_inner_address; /* of an instruction behind its first */
        bool runs_out;            /* control can go on behind its last instruction */
} FunctionCode;

/*
 * Decodes code that is at address. Returns 0, -ENOMEM, or -EOPNOTSUPP with the end of a sentence
 * about the function in *ret_reason (static): when it does not decode to its end, or jumps into the
 * middle of an instruction.
 */
int function_code_read(const uint8_t *code, size_t size, uint64_t address, FunctionCode *ret,
                       const char **ret_reason);
void function_code_done(FunctionCode *code);

/* For those who read it. Returns 0 or -ENOMEM. */
int function_code_add_leave(FunctionCode *code, const Leave *leave);

/* Something jumps to that address in it: a return that is reached from there has no guard. */
void function_code_reach(FunctionCode *code, uint64_t target);

/* Does the address lie in the code? */
bool function_code_has(const FunctionCode *code, uint64_t address);

/*
 * Does an instruction begin at that place, counted from the beginning of the code? Decodes no
 * further than that. Returns 1, 0 with the beginning of the instruction that the place is in, or an
 * error as above.
 */
int function_code_is_boundary(const uint8_t *code, size_t size, size_t place, size_t *ret_begin,
                              const char **ret_reason);

#endif
