/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program for bindings of the kernel back end: nothing of it is ever measured. With an argument
 * it waits until it is killed.
 */

#include <unistd.h>

__attribute__((noinline)) int target_one(int n);
__attribute__((noinline)) int target_two(int n);
__attribute__((noinline)) int target_tail(int n);

int target_one(int n) {
        __asm__ volatile("nop; nop");
        return n + 1;
}

int target_two(int n) {
        __asm__ volatile("nop; nop; nop");
        return n + 2;
}

/* Left by a jump, and by nothing else. */
__asm__(".text\n"
        ".globl target_tail\n"
        ".type target_tail, %function\n"
        "target_tail:\n"
#if defined(__aarch64__)
        "        add w0, w0, #1\n"
        "        b target_two\n"
#else
        "        inc %edi\n"
        "        jmp target_two\n"
#endif
        ".size target_tail, . - target_tail\n");

int main(int argc, char *argv[]) {
        if (argc > 1)
                (void) pause();
        return target_one(argc) + target_two(argc) + target_tail(argc) == 0;
}
