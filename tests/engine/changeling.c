/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program that is made twice, with another function at the same place. It ends well if what it
 * calls is what it was made with: with the first instruction of the one ("push") in the place of
 * the other's, it returns to nowhere.
 */

#include <stdio.h>

/* clang-format off */
#if defined(__aarch64__)
#define BEGIN "nop\n"
#if CHANGED
#define RESULT 3
#define BODY "add x0, x0, #2\n"
#else
#define RESULT 2
#define BODY "str x30, [sp, #-16]!\n"                                                            \
             ".cfi_adjust_cfa_offset 16\n"                                                       \
             ".cfi_rel_offset x30, 0\n"                                                          \
             "add x0, x0, #1\n"                                                                  \
             "ldr x30, [sp], #16\n"                                                              \
             ".cfi_adjust_cfa_offset -16\n"                                                      \
             ".cfi_restore x30\n"
#endif
#else
#define BEGIN "endbr64\n"
#if CHANGED
#define RESULT 3
#define BODY "lea 2(%rdi), %rax\n"
#else
#define RESULT 2
#define BODY "push %rbx\n"                                                                       \
             ".cfi_adjust_cfa_offset 8\n"                                                        \
             ".cfi_rel_offset %rbx, 0\n"                                                         \
             "lea 1(%rdi), %rax\n"                                                               \
             "pop %rbx\n"                                                                        \
             ".cfi_adjust_cfa_offset -8\n"                                                       \
             ".cfi_restore %rbx\n"
#endif
#endif

__asm__(".text\n"
        ".balign 64\n"
        ".globl request\n"
        ".type request, %function\n"
        "request:\n"
        ".cfi_startproc\n"
        BEGIN
        BODY
        "ret\n"
        ".cfi_endproc\n"
        ".size request, . - request\n"
        ".balign 64\n");
/* clang-format on */

long request(long n);

int main(void) {
        long result = request(1);

        (void) printf("%li\n", result);
        return result != RESULT;
}
