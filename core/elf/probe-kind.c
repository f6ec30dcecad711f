/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a probe costs whoever comes upon it depends on the instruction that it is on: a factor of
 * fifty between the best and the worst. Which is which is decided by the kernel
 * (arch/x86/kernel/uprobes.c, *_setup_xol_ops()): it emulates branches, calls, push of a register
 * and nop; from Linux 6.18 on also longer nops, of which that of five bytes is replaced by a call.
 * All else is stepped: ret and pop too.
 *
 * Later kernels may emulate more: then a probe costs less than is said here. The times were seen on
 * one machine, see tlob.binding(5).
 */

#include "elf/probe-kind.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sentence.h"
#include "elf/read.h"

#define OPERAND_SIZE 0x66 /* a prefix: the kernel emulates no branch that has it */
#define REX_B        0x41 /* the only one before a push that the kernel emulates */

const char *probe_kind_to_string(ProbeKind kind) {
        static const char *const names[PROBE_N_KINDS] = {
                [PROBE_UNKNOWN] = "",
                [PROBE_OPTIMISED] = "optimised",
                [PROBE_EMULATED] = "emulated",
                [PROBE_STEPPED] = "single-stepped",
        };

        return names[kind];
}

static bool is_prefix(uint8_t byte) {
        static const uint8_t prefixes[] = { OPERAND_SIZE, 0x67, 0xf0, 0xf2, 0xf3, 0x2e,
                                            0x36,         0x3e, 0x26, 0x64, 0x65 };

        return memchr(prefixes, byte, sizeof(prefixes));
}

static bool is_push(const uint8_t *code, size_t size) {
        if (size > 1 && code[0] == REX_B)
                code++;
        return (*code & 0xf8) == 0x50;
}

static bool is_branch(const uint8_t *code, size_t size) {
        if (code[0] == 0x0f)
                return size > 1 && (code[1] & 0xf0) == 0x80;
        return code[0] == 0xe8 || code[0] == 0xe9 || code[0] == 0xeb || (code[0] & 0xf0) == 0x70;
}

static bool is_long_nop(const uint8_t *code, size_t size) {
        return size > 1 && code[0] == 0x0f && code[1] == 0x1f;
}

static bool is_nop5(const uint8_t *code, size_t size) {
        static const uint8_t nop5[NOP5_SIZE] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

        return size >= sizeof(nop5) && memcmp(code, nop5, sizeof(nop5)) == 0;
}

/* Where the instruction goes on behind its prefixes. */
static size_t skip_prefixes(const uint8_t *code, size_t size) {
        size_t n = 0;

        while (n + 1 < size && is_prefix(code[n]))
                n++;
        return n;
}

/* The one of a single byte, or a long one, with any prefixes. */
static bool is_nop(const uint8_t *code, size_t size) {
        size_t n = skip_prefixes(code, size);

        return size > 0 && (code[n] == 0x90 || is_long_nop(code + n, size - n));
}

ProbeKind probe_kind_of_code(const uint8_t *code, size_t size, bool knows_nops) {
        size_t n = skip_prefixes(code, size);

        if (size == 0)
                return PROBE_UNKNOWN;
        if (knows_nops && is_nop5(code, size))
                return PROBE_OPTIMISED;
        if (is_push(code, size))
                return PROBE_EMULATED;
        if (code[n] == 0x90 || (knows_nops && is_long_nop(code + n, size - n)))
                return PROBE_EMULATED;
        if (is_branch(code + n, size - n) && !memchr(code, OPERAND_SIZE, n))
                return PROBE_EMULATED;
        return PROBE_STEPPED;
}

static bool kernel_knows_nops(void) {
        unsigned major, minor;
        struct utsname name;

        return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
               (major > 6 || (major == 6 && minor >= 18));
}

ProbeKind probe_kind_at(int fd, uint64_t offset) {
#if defined(__x86_64__)
        uint8_t code[PROBE_CODE_MAX];
        ssize_t n = elf_read(fd, code, sizeof(code), offset);

        return n > 0 ? probe_kind_of_code(code, (size_t) n, kernel_knows_nops()) : PROBE_UNKNOWN;
#else
        (void) kernel_knows_nops;
        return PROBE_UNKNOWN;
#endif
}

bool probe_is_on_nop5(int fd, uint64_t offset) {
#if defined(__x86_64__)
        uint8_t code[NOP5_SIZE];
        ssize_t n = elf_read(fd, code, sizeof(code), offset);

        return n > 0 && is_nop5(code, (size_t) n);
#else
        return false;
#endif
}

bool probe_is_on_nop(int fd, uint64_t offset) {
#if defined(__x86_64__)
        uint8_t code[PROBE_CODE_MAX];
        ssize_t n = elf_read(fd, code, sizeof(code), offset);

        return n > 0 && is_nop(code, (size_t) n);
#else
        return false;
#endif
}

char *probe_kind_describe_cost(ProbeKind kind, const ProbePrices *prices) {
        static const char *const costs[PROBE_N_KINDS] = {
                [PROBE_OPTIMISED] = "0.2 to 0.6 us",
                [PROBE_EMULATED] = "0.5 to 0.8 us",
                [PROBE_STEPPED] = "6 to 11 us",
        };
        const char *how = kind == PROBE_STEPPED ? " (single-stepped)" : "";
        uint64_t ns = prices ? prices->ns[kind] : 0;

        if (kind == PROBE_UNKNOWN)
                return NULL;
        if (ns == 0)
                return sentence_make("%s%s", costs[kind], how);
        return sentence_make("%.*f us%s", ns < 10000, (double) ns / 1000, how);
}
