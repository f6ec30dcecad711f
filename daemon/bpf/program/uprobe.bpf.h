/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_UPROBE_BPF_H
#define BPF_PROGRAM_UPROBE_BPF_H

#include "bpf/program/maps.bpf.h"

/*
 * From Linux 6.13 on, programs of this type have their stack in memory of the CPU, as if they could
 * not be preempted. Those on uprobes can: the program of another task then writes into the same
 * stack (seen on 7.3, where records of one task came out under the name of another). Programs with
 * tail calls are left out of that, so here is one, which the verifier takes out after it has seen
 * it. Every program on a uprobe begins with it.
 */
static __always_inline void keep_own_stack(struct pt_regs *ctx, void *no_programs)
{
	if (never)
		bpf_tail_call(ctx, no_programs, 0);
}

#endif
