/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_PROBE_KIND_H
#define ELF_PROBE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the kernel does with the instruction under a probe; the dearer, the higher. */
typedef enum ProbeKind {
        PROBE_UNKNOWN,
        PROBE_OPTIMISED, /* a nop becomes a call: no trap */
        PROBE_EMULATED,  /* one trap */
        PROBE_RETURN,    /* stepped, if not by the programs on the probe: see ProbePrices */
        PROBE_STEPPED,   /* executed somewhere else, in a single step: two traps */
        PROBE_N_KINDS,
} ProbeKind;

/* "emulated"; "": unknown. Of a return, what the kernel itself does. */
const char *probe_kind_to_string(ProbeKind kind);

#define PROBE_CODE_MAX 15 /* bytes of an instruction */

/* Which nops the kernel knows. */
typedef enum ProbeNops {
        PROBE_NOPS_SHORT,   /* of one byte, with any prefixes */
        PROBE_NOPS_CALL_5,  /* Linux 6.18: up to 8 bytes; that of 5 becomes a call */
        PROBE_NOPS_CALL_10, /* Linux 7.2: up to 10 bytes; that of 10 becomes a call */
} ProbeNops;

ProbeNops probe_nops_of_kernel(void);

/* Does the kernel put no probe there? The second one: on the kernel that runs. */
bool probe_code_is_refused(const uint8_t *code, size_t size, ProbeNops nops);
bool probe_is_refused(int fd, uint64_t offset);

/* What such an instruction is, in words for a sentence. */
#if defined(__aarch64__)
#define PROBE_REFUSED                                                                              \
        "an instruction (of an atomic access, a load from beside the code, a return with a key, "  \
        "or of the system)"
#else
#define PROBE_REFUSED "an instruction with a prefix (LOCK, or of a segment)"
#endif

/* PROBE_UNKNOWN is also what the kernel puts no probe on, or takes for something else. */
ProbeKind probe_kind_of_code(const uint8_t *code, size_t size, ProbeNops nops);

/* Of the instruction at that offset in a file, on the kernel that runs. */
ProbeKind probe_kind_at(int fd, uint64_t offset);

#define NOP5_SIZE  5
#define NOP10_SIZE 10

/*
 * Is it the nop that Linux 6.18 to 7.1 replace with a call, whatever the kernel that runs? That
 * call is into memory that a process has no more after fork() (seen on 6.18), and overwrites what
 * is below the stack pointer; what 7.2 puts in place of 10 bytes does neither.
 */
bool probe_is_on_nop5(int fd, uint64_t offset);

/* What does harm when the kernel executes it somewhere else, in single steps. */
typedef enum ProbeHarm {
        PROBE_HARMLESS,
        /* Children that it makes go on in that place, and so does who returns from a signal. */
        PROBE_ON_SYSTEM_CALL,
        /* The flag of the step is saved, too: when it is restored, the program dies by SIGTRAP. */
        PROBE_ON_FLAGS,
        /* Each repetition is a step, and hits the probe: seconds for some megabytes. */
        PROBE_ON_REPEATED,
        /*
         * The kernel looks at the opcode alone, and emulates another instruction in its place: a
         * jump for a store of vmovdqa, say. Of vector instructions (VEX, EVEX) it refuses others.
         */
        PROBE_ON_MISTAKEN,
        PROBE_N_HARMS,
} ProbeHarm;

ProbeHarm probe_harm_at(int fd, uint64_t offset);

/* None of these, no nop of five bytes, and nothing that this kernel refuses; by one look. */
bool probe_is_harmless(int fd, uint64_t offset);

/* Is it a nop of whatever length? */
bool probe_is_on_nop(int fd, uint64_t offset);

/* Is it one of the nops that some kernel replaces with a call, when it has a probe? */
bool probe_code_may_become_call(const uint8_t *code, size_t size);

/* What a probe takes from whoever runs into it, on the machine where that was measured. */
typedef struct ProbePrices {
        uint64_t ns[PROBE_N_KINDS]; /* 0: not known */
        bool returns_at_once;       /* at a stop, PROBE_RETURN takes no step */
} ProbePrices;

/*
 * The time that a probe takes, as words for a sentence: on this machine, or if that is not known
 * (also: prices is NULL), on one where it was measured. The caller's. NULL: not known, or for want
 * of memory.
 */
char *probe_kind_describe_cost(ProbeKind kind, const ProbePrices *prices);

#endif
