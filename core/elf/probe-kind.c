/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a probe costs whoever comes upon it depends on the instruction that it is on: a factor of
 * fifty between the best and the worst. Which is which is decided by the kernel
 * (arch/x86/kernel/uprobes.c, *_setup_xol_ops()): it emulates branches, calls, push of a register
 * and nop. Of longer nops, it knows those that it writes itself, each by all of its bytes: from
 * Linux 6.18 on those of up to 8 bytes, of which it replaces that of 5 by a call; from Linux 7.2
 * on those of up to 10, of which it replaces that of 10, and that of 5 no more (seen on 6.18, 7.1,
 * 7.2 and 7.3). All else is stepped: ret and pop too. A program on the probe may do better for ret.
 *
 * It takes no probe on what has a prefix of a segment (but of FS and GS) or LOCK, as that nop of 10
 * bytes is before 7.2, nor on branches with operands of 16 bits. Where no process maps the file
 * yet, it does not say so: each that does maps it without the probe then.
 *
 * On arm64, arm64-probe.c knows.
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
#define REX          0x40 /* to 0x4f: the last prefix */
#define REX_2        0xd5
#define VEX_2        0xc5
#define VEX_3        0xc4
#define EVEX         0x62
#define REX_B        0x41 /* the only one before a push that the kernel emulates */

const char *probe_kind_to_string(ProbeKind kind) {
        static const char *const names[PROBE_N_KINDS] = {
                [PROBE_UNKNOWN] = "",
                [PROBE_OPTIMISED] = "optimised",
                [PROBE_EMULATED] = "emulated",
                [PROBE_RETURN] = "single-stepped",
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

/* One that takes the address from the stack, and no more; also as old processors wanted it. */
static bool is_return(const uint8_t *code, size_t size) {
        return code[0] == 0xc3 ||
               (size > 1 && (code[0] == 0xf2 || code[0] == 0xf3) && code[1] == 0xc3);
}

static bool is_long_nop(const uint8_t *code, size_t size) {
        return size > 1 && code[0] == 0x0f && code[1] == 0x1f;
}

/* How long the nop is, if it is one of those that the kernel writes; else 0. */
static size_t size_of_known_nop(const uint8_t *code, size_t size) {
        static const uint8_t nops[][NOP10_SIZE] = {
                { 0x90 },
                { 0x66, 0x90 },
                { 0x0f, 0x1f, 0x00 },
                { 0x0f, 0x1f, 0x40, 0x00 },
                { 0x0f, 0x1f, 0x44, 0x00, 0x00 },
                { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 },
                { 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00 },
                { 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 },
                { 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 },
                { 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 },
        };

        for (size_t n = 1; n <= ELEMENTSOF(nops) && n <= size; n++)
                if (memcmp(code, nops[n - 1], n) == 0)
                        return n;
        return 0;
}

static bool is_nop5(const uint8_t *code, size_t size) {
        return size_of_known_nop(code, size) == NOP5_SIZE;
}

bool probe_code_may_become_call(const uint8_t *code, size_t size) {
        size_t nop = size_of_known_nop(code, size);

        return nop == NOP5_SIZE || nop == NOP10_SIZE;
}

/* Where the instruction goes on behind its prefixes. */
static size_t skip_prefixes(const uint8_t *code, size_t size) {
        size_t n = 0;

        while (n + 1 < size && is_prefix(code[n]))
                n++;
        return n;
}

/* Of an instruction of which prefixes change what it does. */
static size_t skip_all_prefixes(const uint8_t *code, size_t size) {
        size_t n = skip_prefixes(code, size);

        return n + 1 < size && (code[n] & 0xf0) == REX ? n + 1 : n;
}

/* The one of a single byte, or a long one, with any prefixes. */
static bool is_nop(const uint8_t *code, size_t size) {
        size_t n = skip_prefixes(code, size);

        return size > 0 && (code[n] == 0x90 || is_long_nop(code + n, size - n));
}

/* Vector instructions, whose opcodes mean something else, and xchg %rax, %r8, which is no nop. */
static bool is_mistaken(const uint8_t *code, size_t size) {
        size_t n = skip_prefixes(code, size), all = skip_all_prefixes(code, size);

        if (code[n] == VEX_2 || code[n] == VEX_3 || code[n] == EVEX || code[n] == REX_2)
                return true;
        return all > n && (code[n] & 1) && code[all] == 0x90;
}

/* is_prefix_bad() of the kernel, which looks for its own nops before it. */
bool probe_code_is_refused(const uint8_t *code, size_t size, ProbeNops nops) {
        static const uint8_t refused[] = { 0x26, 0x2e, 0x36, 0x3e, 0xf0 };
        size_t n = skip_prefixes(code, size);

        if (nops == PROBE_NOPS_CALL_10 && size_of_known_nop(code, size) == NOP10_SIZE)
                return false;
        for (size_t i = 0; i < n; i++)
                if (memchr(refused, code[i], sizeof(refused)))
                        return true;
        if (!memchr(code, OPERAND_SIZE, n))
                return false;
        n = skip_all_prefixes(code, size);
        return is_branch(code + n, size - n);
}

/* What the kernel makes of one that it knows. */
static ProbeKind kind_of_nop(size_t size, ProbeNops nops) {
        static const struct {
                size_t emulated, optimised;
        } sizes[] = {
                [PROBE_NOPS_SHORT] = { .emulated = 2 },
                [PROBE_NOPS_CALL_5] = { .emulated = 8, .optimised = NOP5_SIZE },
                [PROBE_NOPS_CALL_10] = { .emulated = NOP10_SIZE, .optimised = NOP10_SIZE },
        };

        if (size == sizes[nops].optimised)
                return PROBE_OPTIMISED;
        return size <= sizes[nops].emulated ? PROBE_EMULATED : PROBE_STEPPED;
}

ProbeKind probe_kind_of_code(const uint8_t *code, size_t size, ProbeNops nops) {
        size_t n = skip_prefixes(code, size), nop;

        if (size == 0 || probe_code_is_refused(code, size, nops) || is_mistaken(code, size))
                return PROBE_UNKNOWN;
        nop = size_of_known_nop(code, size);
        if (nop > 0)
                return kind_of_nop(nop, nops);
        if (is_push(code, size) || code[n] == 0x90)
                return PROBE_EMULATED;
        if (is_branch(code + n, size - n) && !memchr(code, OPERAND_SIZE, n))
                return PROBE_EMULATED;
        return is_return(code, size) ? PROBE_RETURN : PROBE_STEPPED;
}

ProbeNops probe_nops_of_kernel(void) {
        unsigned major, minor;
        struct utsname name;

        if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2 || major < 6 ||
            (major == 6 && minor < 18))
                return PROBE_NOPS_SHORT;
        return major < 7 || (major == 7 && minor < 2) ? PROBE_NOPS_CALL_5 : PROBE_NOPS_CALL_10;
}

#if defined(__x86_64__)

ProbeKind probe_kind_at(int fd, uint64_t offset) {
        uint8_t code[PROBE_CODE_MAX];
        ssize_t n = elf_read(fd, code, sizeof(code), offset);

        return n > 0 ? probe_kind_of_code(code, (size_t) n, probe_nops_of_kernel()) : PROBE_UNKNOWN;
}

bool probe_is_refused(int fd, uint64_t offset) {
        uint8_t code[PROBE_CODE_MAX];
        ssize_t n = elf_read(fd, code, sizeof(code), offset);

        return n > 0 && probe_code_is_refused(code, (size_t) n, probe_nops_of_kernel());
}

#elif !defined(__aarch64__)

ProbeKind probe_kind_at(int fd, uint64_t offset) {
        return PROBE_UNKNOWN;
}

bool probe_is_refused(int fd, uint64_t offset) {
        return false;
}

#endif

/* syscall and sysenter; the kernel puts no probe on int. */
static bool is_system_call(const uint8_t *code, size_t size) {
        size_t n = skip_all_prefixes(code, size);

        return size - n > 1 && code[n] == 0x0f && (code[n + 1] == 0x05 || code[n + 1] == 0x34);
}

/* pushf */
static bool is_saving_flags(const uint8_t *code, size_t size) {
        return code[skip_all_prefixes(code, size)] == 0x9c;
}

/* movs, cmps, stos, lods, scas, ins and outs, with a prefix to do that again and again. */
static bool is_repeated(const uint8_t *code, size_t size) {
        size_t n = skip_all_prefixes(code, size);
        uint8_t what = code[n] & 0xfe;

        return (memchr(code, 0xf2, n) || memchr(code, 0xf3, n)) &&
               (what == 0xa4 || what == 0xa6 || (what >= 0xaa && what <= 0xae) || what == 0x6c ||
                what == 0x6e);
}

/* What lies there. Returns how much of it, 0 also where the instructions are not known. */
static size_t read_code(int fd, uint64_t offset, uint8_t code[static PROBE_CODE_MAX]) {
#if defined(__x86_64__)
        ssize_t n = elf_read(fd, code, PROBE_CODE_MAX, offset);

        return n > 0 ? (size_t) n : 0;
#else
        return 0;
#endif
}

/* Is that such an instruction? Each of them looks no further than size. */
static bool is_on(int fd, uint64_t offset, bool (*is_one)(const uint8_t *code, size_t size)) {
        uint8_t code[PROBE_CODE_MAX];
        size_t n = read_code(fd, offset, code);

        return n > 0 && is_one(code, n);
}

bool probe_is_on_nop5(int fd, uint64_t offset) {
        return is_on(fd, offset, is_nop5);
}

static ProbeHarm harm_of(const uint8_t *code, size_t size) {
        static bool (*const are_ones[PROBE_N_HARMS])(const uint8_t *code, size_t size) = {
                [PROBE_ON_SYSTEM_CALL] = is_system_call,
                [PROBE_ON_FLAGS] = is_saving_flags,
                [PROBE_ON_REPEATED] = is_repeated,
                [PROBE_ON_MISTAKEN] = is_mistaken,
        };

        for (ProbeHarm harm = PROBE_HARMLESS + 1; size > 0 && harm < PROBE_N_HARMS; harm++)
                if (are_ones[harm](code, size))
                        return harm;
        return PROBE_HARMLESS;
}

ProbeHarm probe_harm_at(int fd, uint64_t offset) {
        uint8_t code[PROBE_CODE_MAX];
        size_t n = read_code(fd, offset, code);

        return harm_of(code, n);
}

bool probe_is_harmless(int fd, uint64_t offset) {
        uint8_t code[PROBE_CODE_MAX];
        size_t n = read_code(fd, offset, code);

        return n == 0 || (!is_nop5(code, n) && harm_of(code, n) == PROBE_HARMLESS &&
                          !probe_code_is_refused(code, n, probe_nops_of_kernel()));
}

bool probe_is_on_nop(int fd, uint64_t offset) {
        return is_on(fd, offset, is_nop);
}

char *probe_kind_describe_cost(ProbeKind kind, const ProbePrices *prices) {
        static const char *const costs[PROBE_N_KINDS] = {
                [PROBE_OPTIMISED] = "0.2 to 0.6 us",
                [PROBE_EMULATED] = "0.5 to 0.8 us",
                [PROBE_RETURN] = "6 to 11 us",
                [PROBE_STEPPED] = "6 to 11 us",
        };
        bool stepped = kind == PROBE_STEPPED ||
                       (kind == PROBE_RETURN && !(prices && prices->returns_at_once));
        const char *how = stepped ? " (single-stepped)" : "";
        uint64_t ns = prices ? prices->ns[kind] : 0;

        if (kind == PROBE_UNKNOWN)
                return NULL;
        if (ns == 0)
                return sentence_make("%s%s", costs[kind], how);
        return sentence_make("%.*f us%s", ns < 10000, (double) ns / 1000, how);
}
