/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_EXITS_H
#define ELF_EXITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every instruction at which control can leave a function. */

#define FUNCTION_EXITS_MAX 1024
#define FUNCTION_DEPTH_MAX (1U << 30) /* of the stack */

typedef struct FunctionExits {
        uint64_t *offsets; /* in the file, ascending; owned */
        size_t n;
        size_t n_returns; /* of these, how many are RET; the others are jumps to other functions */
        /*
         * Or places in the runtime of Go, of a function of Go only: there, its goroutine leaves the
         * thread.
         */
        size_t n_switches;
        /*
         * The offsets are those of branches before the RETs that look at the guard of the stack, on
         * which a probe costs less: how far the stack pointer lies there below where it is at the
         * entry, in bytes. 0: they are those of the RETs.
         */
        uint32_t depth;
        bool depth_of_frame_pointer; /* in place of the stack pointer: how deep that is varies */
        uint64_t start;  /* where the probe of the start belongs: an offset in the file */
        char *successor; /* a function that it jumps to, NULL: none that has a name; owned */
        /*
         * Why one of them is not enough, as the end of a sentence about the function; NULL: it is
         * enough. Owned.
         */
        char *several;
} FunctionExits;

/* The ways out of the function, without the places in the runtime; and which of them are jumps. */
static inline size_t function_exits_n_ways(const FunctionExits *exits) {
        return exits->n - exits->n_switches;
}

static inline size_t function_exits_n_jumps(const FunctionExits *exits) {
        return function_exits_n_ways(exits) - exits->n_returns;
}

void function_exits_done(FunctionExits *exits);

#endif
