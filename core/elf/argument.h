/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_ARGUMENT_H
#define ELF_ARGUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where an argument lies when a probe is hit: of a USDT probe as its note says, of a function as
 * the calling convention has it. Registers are named by where struct pt_regs has them.
 */

typedef enum ElfArgumentKind {
        ELF_ARGUMENT_NONE,
        ELF_ARGUMENT_CONSTANT,
        ELF_ARGUMENT_REGISTER,
        ELF_ARGUMENT_MEMORY, /* at base + index * scale + value */
        ELF_ARGUMENT_N_KINDS,
} ElfArgumentKind;

typedef struct ElfArgument {
        ElfArgumentKind kind;
        uint8_t size; /* in bytes: 1, 2, 4 or 8 */
        bool is_signed;
        uint8_t scale; /* 0: there is no index */
        uint16_t base;
        uint16_t index;
        int64_t value; /* of a constant; else what is added to the address */
} ElfArgument;

/* A place at which an argument lies so. */
typedef struct ElfArgumentPlace {
        uint64_t offset; /* in the file */
        ElfArgument argument;
} ElfArgumentPlace;

#define ELF_ARGUMENT_PLACES_MAX 16

/*
 * An argument of a probe that is at several places: those at which it lies in different ways, which
 * are told apart by where they are in a page of memory. If there is one, it is for all of them.
 */
typedef struct ElfArgumentPlaces {
        size_t n;
        ElfArgumentPlace places[ELF_ARGUMENT_PLACES_MAX];
} ElfArgumentPlaces;

#define ELF_REGISTERS_SIZE         1024 /* more than those of any machine have */
#define ELF_ARGUMENTS_MAX          12   /* of a USDT probe, as in sys/sdt.h */
#define ELF_FUNCTION_ARGUMENTS_MAX 6    /* of a function, that are in registers */

/*
 * The argument of that number, counted from 1, of those that a note of a USDT probe lists: "8@%rdi
 * -4@-20(%rbp) 4@$7", on arm64 "8@x0 -4@[sp, 20] 4@7". By libbpf's rules, so what bpftrace and
 * others can read can be read here. Returns 0; -ESRCH, there are not so many; -EBADMSG, it is none
 * of the forms that are known, or not in memory or a register for integers; -EOPNOTSUPP, not on
 * this machine.
 */
int elf_argument_parse(const char *arguments, unsigned number, ElfArgument *ret);

/* Of a function in C, at its first instruction. Returns 0, -ESRCH or -EOPNOTSUPP, as above. */
int elf_argument_of_function(unsigned number, ElfArgument *ret);

bool elf_argument_equal(const ElfArgument *a, const ElfArgument *b);

#endif
