/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>

#include "backend/backend.h"

/*
 * What the programs of the bench share. Each measures one thing in rounds and prints raw values,
 * one a line; tools/bench makes medians and ratios of them. Functions that can fail say why on
 * standard error and return a negative errno.
 */

/* Functions to be measured, one for each kind of first instruction. */
#if defined(__x86_64__)
#define BENCH_PUSH    "push %rbp\nmov %rsp, %rbp\npop %rbp"
#define BENCH_ENDBR64 "endbr64\n" BENCH_PUSH
/* With a look at the guard of the stack before it returns, as -fstack-protector makes it. */
#define BENCH_GUARD                                                                                \
        "push %rbp\n.cfi_adjust_cfa_offset 8\n"                                                    \
        "mov %fs:0x28, %rax\n"                                                                     \
        "mov %rax, -8(%rsp)\n"                                                                     \
        "mov -8(%rsp), %rdx\n"                                                                     \
        "sub %fs:0x28, %rdx\n"                                                                     \
        "jne bench_stack_is_broken\n"                                                              \
        "pop %rbp\n.cfi_adjust_cfa_offset -8\n"
#else
#error "Say here what functions begin with on this machine."
#endif

/* Where that goes if it finds what it never does: once in a file that has such functions. */
#define BENCH_DEFINE_STACK_FAILURE                                                                 \
        __asm__(".text\n.type bench_stack_is_broken, @function\n"                                  \
                "bench_stack_is_broken: ud2\n.size bench_stack_is_broken, "                        \
                ".-bench_stack_is_broken\n")

/* Defines void name(void), which does nothing, in a cache line of its own. */
#define BENCH_DEFINE_TARGET(name, begin)                                                           \
        __asm__(".text\n.balign 64\n.type " #name ", @function\n"                                  \
                ".globl " #name "\n" #name ":\n.cfi_startproc\n" begin "\n"                        \
                "ret\n.cfi_endproc\n.size " #name ", .-" #name "\n");                              \
        void name(void)

/* CLOCK_MONOTONIC */
uint64_t bench_now_ns(void);

/* What the calling thread has spent on a CPU: what others do there does not count. */
uint64_t bench_cpu_ns(void);

/* Keeps the calling thread, and what it starts, on one CPU. */
int bench_pin(void);

/* Of this thread, for the last CPU that it may use, which is the one that bench_pin() takes. */
int bench_last_cpu(void);

/* Says why: "bench-window: SENTENCE: STRERROR". Returns r. */
int bench_fail(int r, const char *format, ...) _printf_(2, 3);

/* The i-th argument, a number greater than 0, or what to take when there is none. */
unsigned bench_argument(int argc, char *argv[], int i, unsigned otherwise);

/* Prints one value of a series: "SERIES ROUND VALUE". */
void bench_sample(unsigned round, double value, const char *format, ...) _printf_(3, 4);

/* A cgroup as bindings are confined to it. */
typedef struct BenchCgroup {
        uint64_t id; /* 0: they are confined to none */
        unsigned level;
} BenchCgroup;

#define BENCH_UNCONFINED ((BenchCgroup) {})

/*
 * The cgroup that this process is in, then up to n - 1 others beside it. Fails when there are not
 * as many.
 */
int bench_cgroups(size_t n, BenchCgroup ret[static n]);

/* How a back end is made unless it matters. */
extern const BackendConfig bench_backend_config;

int bench_backend_new(const BackendConfig *config, Backend **ret);

/* The same with a socket for marks that are measured without traps (joined.h), for n processes. */
int bench_backend_new_joined(unsigned n, Backend **ret);
Backend *bench_backend_free(Backend *backend);
DEFINE_CLEANUP(Backend, bench_backend_free);

/* A binding on a function of this program. */
int bench_resolve(const char *function, const char *budget, Binding **ret, BindingFile **ret_file);
int bench_add(Backend *backend, const char *function, const char *budget, BenchCgroup cgroup,
              uint32_t *ret_index);

/* The same on a mark of this program. */
int bench_resolve_mark(const char *mark, const char *budget, Binding **ret, BindingFile **ret_file);
int bench_add_mark(Backend *backend, const char *mark, const char *budget, BenchCgroup cgroup,
                   uint32_t *ret_index);

/* A binding on a system call. */
int bench_add_call(Backend *backend, const char *name, const char *budget, BenchCgroup cgroup,
                   uint32_t *ret_index);

/* The same between the events of the kernel at the begin and the end of a system call. */
int bench_add_events(Backend *backend, const char *name, const char *budget, BenchCgroup cgroup,
                     uint32_t *ret_index);

/* Takes a binding away that must have measured so many windows, from start to stop. */
int bench_remove(Backend *backend, uint32_t index, uint64_t n_windows);

#endif
