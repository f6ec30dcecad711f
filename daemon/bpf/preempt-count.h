/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_PREEMPT_COUNT_H
#define BPF_PREEMPT_COUNT_H

#include <stdint.h>

/* Where each CPU counts what keeps it from switching tasks: among that, interrupts. */

struct btf;

/*
 * How far behind the run queue of a CPU that is, in bytes, by the types of the running kernel; on
 * arm64, how far behind the beginning of its task. 0: they do not tell.
 */
int64_t preempt_count_find(const struct btf *btf);

#endif
