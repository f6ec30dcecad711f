/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUGGEST_SAMPLER_H
#define SUGGEST_SAMPLER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* Stacks of what runs, by perf events: some hundred a second on each CPU, whoever it is. */

typedef struct Sampler Sampler;

/* The registers of x86-64 in the order of DWARF, and the instruction pointer. */
#define SAMPLE_REGISTERS 17
#define SAMPLE_IP        16
#define SAMPLE_SP        7
#define SAMPLE_BP        6

typedef struct StackSample {
        uint64_t time_ns; /* CLOCK_MONOTONIC */
        pid_t pid;
        pid_t tid;
        uint64_t registers[SAMPLE_REGISTERS];
        const uint8_t *stack; /* from the stack pointer on; as long as the call lasts */
        size_t stack_size;
} StackSample;

/*
 * Begins to sample. It takes root, or CAP_PERFMON. Returns 0, or a negative errno with a sentence
 * in *ret_error (NULL for want of memory).
 */
int sampler_new(Sampler **ret, char **ret_error);
Sampler *sampler_free(Sampler *sampler);
DEFINE_CLEANUP(Sampler, sampler_free);

/* How much time a sample stands for. */
uint64_t sampler_get_period(const Sampler *sampler);

/*
 * Hands on what there is, in the order of time, as near as that is known across CPUs. Returns 0, or
 * the first negative errno of on_stack.
 */
int sampler_dispatch(Sampler *sampler, int (*on_stack)(const StackSample *sample, void *userdata),
                     void *userdata);

/* Samples for which there was no room. */
uint64_t sampler_count_lost(const Sampler *sampler);

#endif
