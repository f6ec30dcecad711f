/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * An argument is written as its size, negative if it has a sign, "@", and an operand as the
 * assembler of the machine has it. There are more operands than are read here: those that name
 * symbols, floating-point registers, or the high bytes of a register (%ah) are not.
 */

#include "elf/argument.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"

#if defined(__x86_64__)

#include <asm/ptrace.h>

#define WORD_MAX      64 /* of an argument that is one of these forms */
#define REGISTER_MAX  8
#define REGISTER_FORM "%%%7[a-z0-9]"

typedef struct Register {
        const char *names[4]; /* of 8, 4, 2 and 1 bytes */
        size_t where;
} Register;

#define WHERE(name) offsetof(struct pt_regs, name)

static const Register registers[] = {
        { { "rax", "eax", "ax", "al" }, WHERE(rax) },
        { { "rbx", "ebx", "bx", "bl" }, WHERE(rbx) },
        { { "rcx", "ecx", "cx", "cl" }, WHERE(rcx) },
        { { "rdx", "edx", "dx", "dl" }, WHERE(rdx) },
        { { "rsi", "esi", "si", "sil" }, WHERE(rsi) },
        { { "rdi", "edi", "di", "dil" }, WHERE(rdi) },
        { { "rbp", "ebp", "bp", "bpl" }, WHERE(rbp) },
        { { "rsp", "esp", "sp", "spl" }, WHERE(rsp) },
        { { "r8", "r8d", "r8w", "r8b" }, WHERE(r8) },
        { { "r9", "r9d", "r9w", "r9b" }, WHERE(r9) },
        { { "r10", "r10d", "r10w", "r10b" }, WHERE(r10) },
        { { "r11", "r11d", "r11w", "r11b" }, WHERE(r11) },
        { { "r12", "r12d", "r12w", "r12b" }, WHERE(r12) },
        { { "r13", "r13d", "r13w", "r13b" }, WHERE(r13) },
        { { "r14", "r14d", "r14w", "r14b" }, WHERE(r14) },
        { { "r15", "r15d", "r15w", "r15b" }, WHERE(r15) },
};

/* System V ABI, "Parameter Passing". */
static const size_t function_registers[ELF_FUNCTION_ARGUMENTS_MAX] = {
        WHERE(rdi), WHERE(rsi), WHERE(rdx), WHERE(rcx), WHERE(r8), WHERE(r9),
};

static bool find_register(const char *name, uint16_t *ret) {
        for (size_t i = 0; i < ELEMENTSOF(registers); i++)
                for (size_t j = 0; j < ELEMENTSOF(registers[i].names); j++)
                        if (streq(registers[i].names[j], name)) {
                                *ret = (uint16_t) registers[i].where;
                                return true;
                        }
        return false;
}

static bool parse_constant(const char *operand, ElfArgument *a) {
        char *end;

        a->kind = ELF_ARGUMENT_CONSTANT;
        errno = 0;
        a->value = operand[1] == '-' ? strtoll(operand + 1, &end, 0)
                                     : (int64_t) strtoull(operand + 1, &end, 0);
        return errno == 0 && end > operand + 1 && *end == '\0';
}

static bool parse_register(const char *operand, ElfArgument *a) {
        char base[REGISTER_MAX];
        int n = 0;

        a->kind = ELF_ARGUMENT_REGISTER;
        return sscanf(operand, REGISTER_FORM "%n", base, &n) == 1 && operand[n] == '\0' &&
               find_register(base, &a->base);
}

static bool scale_is_valid(unsigned scale) {
        return scale == 1 || scale == 2 || scale == 4 || scale == 8;
}

/* "-20(%rbp)", "(%rax)", "8(%rax,%rcx)", "-8(%rax,%rcx,4)" */
static bool parse_memory(const char *operand, ElfArgument *a) {
        char base[REGISTER_MAX], index[REGISTER_MAX] = "";
        char *parenthesis;
        unsigned scale = 1;
        int n = 0, fields;

        a->kind = ELF_ARGUMENT_MEMORY;
        errno = 0;
        a->value = strtoll(operand, &parenthesis, 0);
        if (errno != 0)
                return false;
        fields = sscanf(parenthesis, "(" REGISTER_FORM ")%n", base, &n);
        if (n == 0)
                fields = sscanf(parenthesis, "(" REGISTER_FORM "," REGISTER_FORM ")%n", base, index,
                                &n);
        if (n == 0)
                fields = sscanf(parenthesis, "(" REGISTER_FORM "," REGISTER_FORM ",%u)%n", base,
                                index, &scale, &n);
        if (fields < 1 || n == 0 || parenthesis[n] != '\0' || !find_register(base, &a->base))
                return false;
        if (*index == '\0')
                return true;
        a->scale = (uint8_t) scale;
        return scale_is_valid(scale) && find_register(index, &a->index);
}

static bool parse_size(long size, ElfArgument *a) {
        long bytes = size < 0 ? -size : size;

        a->size = (uint8_t) bytes;
        a->is_signed = size < 0;
        return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static int parse_word(const char *word, ElfArgument *ret) {
        ElfArgument a = {};
        char *at;
        long size;

        size = strtol(word, &at, 10);
        if (at == word || *at != '@' || size < -8 || size > 8 || !parse_size(size, &a))
                return -EBADMSG;
        if (at[1] == '$' ? !parse_constant(at + 1, &a)
                         : (at[1] == '%' ? !parse_register(at + 1, &a) : !parse_memory(at + 1, &a)))
                return -EBADMSG;
        *ret = a;
        return 0;
}

int elf_argument_parse(const char *arguments, unsigned number, ElfArgument *ret) {
        char word[WORD_MAX];
        size_t n;

        do {
                arguments += strspn(arguments, " ");
                n = strcspn(arguments, " ");
                if (n == 0)
                        return -ESRCH;
                if (number > 1)
                        arguments += n;
        } while (--number > 0);
        if (n >= sizeof(word))
                return -EBADMSG;
        memcpy(word, arguments, n);
        word[n] = '\0';
        return parse_word(word, ret);
}

int elf_argument_of_function(unsigned number, ElfArgument *ret) {
        if (number == 0 || number > ELF_FUNCTION_ARGUMENTS_MAX)
                return -ESRCH;
        *ret = (ElfArgument){
                .kind = ELF_ARGUMENT_REGISTER,
                .size = sizeof(uint64_t),
                .base = (uint16_t) function_registers[number - 1],
        };
        return 0;
}

#else

int elf_argument_parse(const char *arguments, unsigned number, ElfArgument *ret) {
        (void) arguments;
        (void) number;
        (void) ret;
        return -EOPNOTSUPP;
}

int elf_argument_of_function(unsigned number, ElfArgument *ret) {
        (void) number;
        (void) ret;
        return -EOPNOTSUPP;
}

#endif

bool elf_argument_equal(const ElfArgument *a, const ElfArgument *b) {
        return a->kind == b->kind && a->size == b->size && a->is_signed == b->is_signed &&
               a->scale == b->scale && a->base == b->base && a->index == b->index &&
               a->value == b->value;
}
