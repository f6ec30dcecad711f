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

#if defined(__x86_64__) || defined(__aarch64__)

#include <asm/ptrace.h>

#define WORD_MAX     64 /* of an argument that is one of these forms */
#define REGISTER_MAX 8

static bool parse_integer(const char *text, int64_t *ret) {
        char *end;

        errno = 0;
        *ret = *text == '-' ? strtoll(text, &end, 0) : (int64_t) strtoull(text, &end, 0);
        return errno == 0 && end > text && *end == '\0';
}

#endif

#if defined(__x86_64__)

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
        a->kind = ELF_ARGUMENT_CONSTANT;
        return parse_integer(operand + 1, &a->value);
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

static bool parse_operand(const char *operand, ElfArgument *a) {
        switch (*operand) {
        case '$':
                return parse_constant(operand, a);
        case '%':
                return parse_register(operand, a);
        default:
                return parse_memory(operand, a);
        }
}

#elif defined(__aarch64__)

#define N_REGISTERS   31 /* x0 to x30 */
#define REGISTER_FORM "%7[a-z0-9]"

#define WHERE(name) offsetof(struct user_pt_regs, name)

/* Procedure Call Standard, "Parameter passing": x0 and on. */
static const size_t function_registers[ELF_FUNCTION_ARGUMENTS_MAX] = {
        WHERE(regs[0]), WHERE(regs[1]), WHERE(regs[2]),
        WHERE(regs[3]), WHERE(regs[4]), WHERE(regs[5]),
};

static bool find_register(const char *name, uint16_t *ret) {
        unsigned number;
        int n = 0;

        if (streq(name, "sp")) {
                *ret = WHERE(sp);
                return true;
        }
        if ((*name != 'x' && *name != 'w') || name[1] < '0' || name[1] > '9' ||
            sscanf(name + 1, "%u%n", &number, &n) != 1 || name[1 + n] != '\0' ||
            number >= N_REGISTERS)
                return false;
        *ret = (uint16_t) (WHERE(regs[0]) + number * sizeof(uint64_t));
        return true;
}

/* "[x0]", "[sp, 60]" */
static bool parse_memory(const char *operand, ElfArgument *a) {
        char base[REGISTER_MAX], distance[WORD_MAX];
        int n = 0;

        a->kind = ELF_ARGUMENT_MEMORY;
        if (sscanf(operand, "[" REGISTER_FORM "]%n", base, &n) == 1 && n > 0)
                return operand[n] == '\0' && find_register(base, &a->base);
        if (sscanf(operand, "[" REGISTER_FORM ", %63[-0-9a-fx]]%n", base, distance, &n) != 2)
                return false;
        return n > 0 && operand[n] == '\0' && find_register(base, &a->base) &&
               parse_integer(distance, &a->value);
}

/* "x0", "7" */
static bool parse_operand(const char *operand, ElfArgument *a) {
        if (*operand == '[')
                return parse_memory(operand, a);
        if (parse_integer(operand, &a->value)) {
                a->kind = ELF_ARGUMENT_CONSTANT;
                return true;
        }
        *a = (ElfArgument) {
                .kind = ELF_ARGUMENT_REGISTER,
                .size = a->size,
                .is_signed = a->is_signed,
        };
        return find_register(operand, &a->base);
}

#endif

#if defined(__x86_64__) || defined(__aarch64__)

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
        if (!parse_operand(at + 1, &a))
                return -EBADMSG;
        *ret = a;
        return 0;
}

/* Up to the next space that is not within brackets: "-4@[sp, 60]". */
static size_t size_of_word(const char *arguments) {
        const char *end = arguments;
        bool inside = false;

        for (; *end != '\0' && (*end != ' ' || inside); end++)
                inside = *end == '[' || (inside && *end != ']');
        return (size_t) (end - arguments);
}

int elf_argument_parse(const char *arguments, unsigned number, ElfArgument *ret) {
        char word[WORD_MAX];
        size_t n;

        do {
                arguments += strspn(arguments, " ");
                n = size_of_word(arguments);
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
        *ret = (ElfArgument) {
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
