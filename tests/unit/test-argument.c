/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Arguments of USDT probes and functions, as assemblers write them. */

#include "elf/argument.h"

#include <asm/ptrace.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "test.h"

typedef struct Case {
        const char *text;
        ElfArgument argument;
} Case;

#if defined(__aarch64__)

#define WHERE(name)   offsetof(struct user_pt_regs, name)
#define FIRST         "x0"
#define FIRST_WHERE   WHERE(regs[0])
#define SIXTH_WHERE   WHERE(regs[5])
#define ON_STACK      "[sp, -8]"
#define STACK_POINTER WHERE(sp)
#define CONSTANT(n)   n

static const Case cases[] = {
        { "8@x0", { ELF_ARGUMENT_REGISTER, 8, false, 0, WHERE(regs[0]), 0, 0 } },
        { "-4@w19", { ELF_ARGUMENT_REGISTER, 4, true, 0, WHERE(regs[19]), 0, 0 } },
        { "8@x30", { ELF_ARGUMENT_REGISTER, 8, false, 0, WHERE(regs[30]), 0, 0 } },
        { "8@sp", { ELF_ARGUMENT_REGISTER, 8, false, 0, WHERE(sp), 0, 0 } },
        { "4@7", { ELF_ARGUMENT_CONSTANT, 4, false, 0, 0, 0, 7 } },
        { "-4@-9", { ELF_ARGUMENT_CONSTANT, 4, true, 0, 0, 0, -9 } },
        { "8@0xffffffffffffffff", { ELF_ARGUMENT_CONSTANT, 8, false, 0, 0, 0, -1 } },
        { "-4@[sp, 60]", { ELF_ARGUMENT_MEMORY, 4, true, 0, WHERE(sp), 0, 60 } },
        { "8@[x29, -16]", { ELF_ARGUMENT_MEMORY, 8, false, 0, WHERE(regs[29]), 0, -16 } },
        { "1@[x3]", { ELF_ARGUMENT_MEMORY, 1, false, 0, WHERE(regs[3]), 0, 0 } },
};

/* Notes are written by whoever wrote the program. */
static const char *const bad[] = {
        "8",
        "@x0",
        "8@",
        "8@x",
        "8@x31",
        "8@x-1",
        "8@x 1",
        "8@xzr",
        "3@x0",
        "16@q0",
        "8@v0",
        "8f@x0",
        "8@x0,",
        "8@x0x0x0x0x0",
        "8@1x",
        "8@99999999999999999999",
        "8@[x0, x1]",
        "8@[x0, 8",
        "8@[x0, 99999999999999999999]",
        "8@[x0]8",
        "8@[",
        "8@[sp, ]",
        "-9223372036854775808@x0",
};

#else

#define WHERE(name)   offsetof(struct pt_regs, name)
#define FIRST         "%rdi"
#define FIRST_WHERE   WHERE(rdi)
#define SIXTH_WHERE   WHERE(r9)
#define ON_STACK      "-8(%rsp)"
#define STACK_POINTER WHERE(rsp)
#define CONSTANT(n)   "$" n

static const Case cases[] = {
        { "8@%rdi", { ELF_ARGUMENT_REGISTER, 8, false, 0, WHERE(rdi), 0, 0 } },
        { "-4@%eax", { ELF_ARGUMENT_REGISTER, 4, true, 0, WHERE(rax), 0, 0 } },
        { "2@%r12w", { ELF_ARGUMENT_REGISTER, 2, false, 0, WHERE(r12), 0, 0 } },
        { "-1@%sil", { ELF_ARGUMENT_REGISTER, 1, true, 0, WHERE(rsi), 0, 0 } },
        { "4@$7", { ELF_ARGUMENT_CONSTANT, 4, false, 0, 0, 0, 7 } },
        { "-4@$-9", { ELF_ARGUMENT_CONSTANT, 4, true, 0, 0, 0, -9 } },
        { "8@$0xffffffffffffffff", { ELF_ARGUMENT_CONSTANT, 8, false, 0, 0, 0, -1 } },
        { "8@$0x10", { ELF_ARGUMENT_CONSTANT, 8, false, 0, 0, 0, 16 } },
        { "-4@-20(%rbp)", { ELF_ARGUMENT_MEMORY, 4, true, 0, WHERE(rbp), 0, -20 } },
        { "8@(%rsp)", { ELF_ARGUMENT_MEMORY, 8, false, 0, WHERE(rsp), 0, 0 } },
        { "8@8(%rax,%rcx)", { ELF_ARGUMENT_MEMORY, 8, false, 1, WHERE(rax), WHERE(rcx), 8 } },
        { "1@-3(%rax,%r9,4)", { ELF_ARGUMENT_MEMORY, 1, false, 4, WHERE(rax), WHERE(r9), -3 } },
};

/* Notes are written by whoever wrote the program. */
static const char *const bad[] = {
        "8",
        "@%rdi",
        "8@",
        "8@%",
        "3@%rdi",
        "16@%xmm0",
        "8@%xmm0",
        "8f@%xmm0",
        "8@%ah",
        "8@%rdi,",
        "8@%rdirdirdirdi",
        "8@$",
        "8@$1x",
        "8@$99999999999999999999",
        "8@errno(%rip)",
        "8@99999999999999999999(%rax)",
        "8@(%rax",
        "8@(%rax,%rcx,3)",
        "8@(%rax,%rcx,)",
        "8@(,%rcx,8)",
        "-9223372036854775808@%rdi",
        "8@1(%rax)2(%rbx)",
        "8@                                                                             ",
};

#endif

static void test_forms(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                ElfArgument argument = {};

                assert_ok(elf_argument_parse(cases[i].text, 1, &argument));
                if (!elf_argument_equal(&argument, &cases[i].argument))
                        fail_msg("\"%s\" is read as something else", cases[i].text);
        }
}

static void test_numbers(void **state) {
        const char *text = "8@" FIRST "  -4@" CONSTANT("1") " 8@" ON_STACK;
        ElfArgument argument;

        assert_ok(elf_argument_parse(text, 2, &argument));
        assert_int_equal(argument.value, 1);
        assert_ok(elf_argument_parse(text, 3, &argument));
        assert_int_equal(argument.base, STACK_POINTER);
        assert_int_equal(elf_argument_parse(text, 4, &argument), -ESRCH);
        assert_int_equal(elf_argument_parse("", 1, &argument), -ESRCH);
}

static void test_bad(void **state) {
        char longest[4096];
        ElfArgument argument = { .base = 77 };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (elf_argument_parse(bad[i], 1, &argument) != -EBADMSG)
                        fail_msg("\"%s\" is taken for an argument", bad[i]);
        memset(longest, '1', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        memcpy(longest, "8@" CONSTANT("0"), 3);
        assert_int_equal(elf_argument_parse(longest, 1, &argument), -EBADMSG);
        assert_int_equal(argument.base, 77);
}

static void test_functions(void **state) {
        ElfArgument argument;

        assert_ok(elf_argument_of_function(1, &argument));
        assert_int_equal(argument.base, FIRST_WHERE);
        assert_ok(elf_argument_of_function(6, &argument));
        assert_int_equal(argument.base, SIXTH_WHERE);
        assert_int_equal(elf_argument_of_function(0, &argument), -ESRCH);
        assert_int_equal(elf_argument_of_function(7, &argument), -ESRCH);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_forms),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_bad),
                cmocka_unit_test(test_functions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
