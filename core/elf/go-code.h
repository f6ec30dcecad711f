/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_GO_CODE_H
#define ELF_GO_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the compiler of Go puts into functions, from their code, which is at address. */

/* How a function begins that first looks whether its stack has room for it. */
typedef struct GoPrologue {
        uint64_t branch; /* the jump that it takes if there is too little */
        uint64_t body;   /* behind that: what each call comes to once */
} GoPrologue;

/* Returns 1, 0 if it does not look, or an error of decoder_init(). */
int go_code_read_prologue(const uint8_t *code, size_t size, uint64_t address, GoPrologue *ret,
                          const char **ret_reason);

/*
 * Where runtime.mcall() has changed to the goroutine of the scheduler. Returns 1, 0 if it does not
 * look like that function, or an error of decoder_init().
 */
int go_code_find_switch(const uint8_t *code, size_t size, uint64_t address, uint64_t *ret,
                        const char **ret_reason);

/*
 * Does it keep the goroutine in r14, or at least load it again from where it is kept for the thread
 * before anything can follow? Code in assembler need not. Returns 1, 0, or an error of
 * decoder_init().
 */
int go_code_keeps_goroutine(const uint8_t *code, size_t size, uint64_t address,
                            const char **ret_reason);

#endif
