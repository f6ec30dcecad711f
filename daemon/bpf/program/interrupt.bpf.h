/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_INTERRUPT_BPF_H
#define BPF_PROGRAM_INTERRUPT_BPF_H

#include "bpf/program/maps.bpf.h"

/*
 * Has an interrupt come upon the current task? Each CPU counts that, together with other things
 * that keep it from switching tasks. Where in the count is not the same in all kernels (preempt.h):
 * it is seen in an interrupt, which the tick is.
 */

/* The daemon sets it: as preempt_count_find() has it. */
const volatile __s64 preempt_count = 0;

__u32 interrupt_mask; /* of the count; 0: not seen yet */

#define SOFTIRQ_SERVED 0x00000100 /* the other bits of that field say that a task keeps them away */
#define HARDIRQ_OLD    0x000f0000
#define NMI_OLD	       0x00f00000
#define HARDIRQ	       0x0f000000 /* since Linux 7 */
#define NMI	       0x10000000

static __always_inline bool preempt_count_read(__u32 *ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
#if defined(__TARGET_ARCH_arm64)
	void *of = task;
#else
	void *of = BPF_CORE_READ(task, se.cfs_rq, rq);
#endif

	return !bpf_probe_read_kernel(ret, sizeof(*ret), of + preempt_count);
}

/* In an interrupt, or in what an interrupt has left to do. */
static __always_inline void interrupts_learn(void)
{
	__u32 count;

	if (!preempt_count || READ_ONCE(interrupt_mask) || !preempt_count_read(&count))
		return;
	if (count & HARDIRQ)
		WRITE_ONCE(interrupt_mask, HARDIRQ | NMI | SOFTIRQ_SERVED);
	else if (count & HARDIRQ_OLD && !(count & SOFTIRQ_SERVED))
		WRITE_ONCE(interrupt_mask, HARDIRQ_OLD | NMI_OLD | SOFTIRQ_SERVED);
}

/* If that cannot be told, nobody is said to have come here. */
static __always_inline bool interrupts_run(void)
{
	__u32 mask = READ_ONCE(interrupt_mask), count;

	return !mask || !preempt_count_read(&count) || count & mask;
}

#endif
