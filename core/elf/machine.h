/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_MACHINE_H
#define ELF_MACHINE_H

/*
 * What files for this machine look like: e_machine of their ELF header, the flags of their entries
 * in ld.so.cache (the ABI in the second byte, 3 for "ELF, libc 6" in the first: glibc's dl-cache.h
 * and dl-cache.h below sysdeps), and Debian's directory name for them.
 */

#include <elf.h>
#include <link.h>
#include <stdbool.h>

#if defined(__x86_64__) && defined(__LP64__)
#define MACHINE_ELF         EM_X86_64
#define MACHINE_CACHE_FLAGS 0x0303
#define MACHINE_MULTIARCH   "x86_64-linux-gnu"
#elif defined(__aarch64__) && defined(__LP64__)
#define MACHINE_ELF         EM_AARCH64
#define MACHINE_CACHE_FLAGS 0x0a03
#define MACHINE_MULTIARCH   "aarch64-linux-gnu"
#elif defined(__s390x__)
#define MACHINE_ELF         EM_S390
#define MACHINE_CACHE_FLAGS 0x0403
#define MACHINE_MULTIARCH   "s390x-linux-gnu"
#elif defined(__powerpc64__)
#define MACHINE_ELF         EM_PPC64
#define MACHINE_CACHE_FLAGS 0x0503
#define MACHINE_MULTIARCH   "powerpc64le-linux-gnu"
#elif defined(__riscv) && defined(__LP64__)
#define MACHINE_ELF         EM_RISCV
#define MACHINE_CACHE_FLAGS 0x1003
#define MACHINE_MULTIARCH   "riscv64-linux-gnu"
#else
#error "tlobd does not know this machine: add it here."
#endif

#define MACHINE_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)
#define MACHINE_DATA  (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

/* Is a file with that in its ELF header for this machine? */
static inline bool machine_is_own(const unsigned char ident[static EI_NIDENT], unsigned machine) {
        return ident[EI_CLASS] == MACHINE_CLASS && ident[EI_DATA] == MACHINE_DATA &&
               machine == MACHINE_ELF;
}

#endif
