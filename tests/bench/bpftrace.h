/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPFTRACE_H
#define BPFTRACE_H

#include <stdint.h>

#include "base/cleanup.h"

/* bpftrace beside us, measuring functions of this program as its users do. */

typedef struct Bpftrace Bpftrace;

/*
 * Starts it, and returns when its probes are on these functions (NULL after the last). Says why on
 * standard error when it fails.
 */
int bpftrace_start(const char *const *functions, Bpftrace **ret);

/* Ends it, and fails if it has not measured so many calls in all. */
int bpftrace_stop(Bpftrace *bpftrace, uint64_t n_calls);

/* Ends it whatever it does. */
Bpftrace *bpftrace_free(Bpftrace *bpftrace);
DEFINE_CLEANUP(Bpftrace, bpftrace_free);

#endif
