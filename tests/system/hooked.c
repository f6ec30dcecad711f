/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A service that calls a function all the time. With a hook, as an agent or a live patch would set
 * it, a jump to another function lies over the entry of that in memory: who executes what the file
 * has there and goes on behind it comes to a "hlt", and dies.
 *
 * usage: hooked [hook]
 */

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DISTANCE 0xf4 /* of the jump: its first byte, which is that instruction */

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

/* clang-format off */
__asm__(".text\n"
        ".balign 4096\n"
        ".globl request\n"
        ".type request, %function\n"
        "request:\n"
        ".cfi_startproc\n"
        "push %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        "lea 1(%rdi), %rax\n"
        "pop %rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size request, . - request\n"
        ".org request + 5 + " TEXT(DISTANCE) ", 0x90\n"
        ".type instead, %function\n"
        "instead:\n"
        ".cfi_startproc\n"
        "lea 1(%rdi), %rax\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size instead, . - instead\n"
        ".balign 4096\n");
/* clang-format on */

long request(long n);

/* The kernel sets no probe where code can be written: as hooks do, that is taken back. */
static int set_hook(void) {
        static const uint8_t jump[] = { 0xe9, DISTANCE, 0, 0, 0 };
        uint8_t *entry = (uint8_t *) (uintptr_t) request;
        size_t size = (size_t) sysconf(_SC_PAGESIZE);

        if (mprotect(entry, size, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
                return -1;
        memcpy(entry, jump, sizeof(jump));
        return mprotect(entry, size, PROT_READ | PROT_EXEC);
}

int main(int argc, char *argv[]) {
        static const struct timespec pause = { .tv_nsec = 10000000 };

        if (argc > 1 && strcmp(argv[1], "hook") == 0 && set_hook() < 0)
                return 1;
        while (request(1) == 2)
                (void) nanosleep(&pause, NULL);
        return 1;
}
