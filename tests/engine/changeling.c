/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program that is made twice, with another function at the same place. It ends well if what it
 * calls is what it was made with: with the first instruction of the one ("push") in the place of
 * the other's, it returns to nowhere.
 */

#include <stdio.h>

/* clang-format off */
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

__asm__(".text\n"
        ".balign 64\n"
        ".globl request\n"
        ".type request, @function\n"
        "request:\n"
        ".cfi_startproc\n"
        "endbr64\n"
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
