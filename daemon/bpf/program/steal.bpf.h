/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_STEAL_BPF_H
#define BPF_PROGRAM_STEAL_BPF_H

#include "bpf/program/maps.bpf.h"

/*
 * Time that the hypervisor of a virtual machine gave to others while a task seemed to run: "steal".
 * The kernel counts it for each CPU; the part of a task is taken from that, from each switch to it
 * to the next switch from it. The scheduler's own count is up to date at switches and ticks. In
 * between, KVM's is, which lies in memory of the guest, where the kernel says so
 * (CONFIG_KALLSYMS_ALL): a violation that is found in the first moment after a theft would else not
 * show it, only its completion.
 */

/*
 * The daemon sets them: this may be a virtual machine, and addresses of the kernel's variables, if
 * known.
 */
const volatile bool is_virtual = false;
const volatile __u64 per_cpu_offset = 0;
const volatile __u64 steal_time = 0;

/* By the scheduler's count: of the CPU whose run queue the task is on, or has run on last. */
static __always_inline __u64 steal_of_queue(struct task_struct *task)
{
	if (!is_virtual || !bpf_core_field_exists(struct sched_entity, cfs_rq) ||
	    !bpf_core_field_exists(struct rq, prev_steal_time_rq))
		return 0;
	return BPF_CORE_READ(task, se.cfs_rq, rq, prev_steal_time_rq);
}

/*
 * The same of this CPU, at a fraction of the price. On the way into a switch the current task is
 * the one that leaves: it is on the same queue. Global, so that the verifier looks at it once: for
 * each pointer that is followed so, it searches the types of the whole kernel.
 */
__noinline __u64 steal_of_own_queue(void)
{
	if (!is_virtual || !bpf_core_field_exists(struct sched_entity, cfs_rq) ||
	    !bpf_core_field_exists(struct rq, prev_steal_time_rq))
		return 0;
	return bpf_get_current_task_btf()->se.cfs_rq->rq->prev_steal_time_rq;
}

/* By KVM's count; 0: not known. The first member of what lies there. */
static __always_inline __u64 steal_of_cpu(__u32 cpu)
{
	__u64 offset, steal;

	if (!is_virtual || !per_cpu_offset || !steal_time ||
	    bpf_probe_read_kernel(&offset, sizeof(offset),
				  (void *)(per_cpu_offset + cpu * sizeof(offset))) ||
	    bpf_probe_read_kernel(&steal, sizeof(steal), (void *)(offset + steal_time)))
		return 0;
	return steal;
}

/* For the task of that slot, on its own CPU: it runs from now on. */
static __always_inline void steal_begin(struct tlob_task *t)
{
	if (is_virtual)
		WRITE_ONCE(t->steal_begin_ns, steal_of_own_queue());
}

/* It does not any more. */
static __always_inline void steal_end(struct tlob_task *t)
{
	if (is_virtual)
		WRITE_ONCE(t->stolen_ns, t->stolen_ns + steal_of_own_queue() - t->steal_begin_ns);
}

/*
 * Up to now, or up to the last tick if that is not known. A switch that comes in between leaves the
 * last part out. own: the task is the current one. A constant, so that the others do without a
 * call, for which there is no stack left on Linux 6.1.
 */
static __always_inline __u64 task_stolen(const struct tlob_task *t, struct task_struct *task,
					 bool own, __u64 of_cpu)
{
	__u64 sequence = READ_ONCE(t->sequence), since = 0, stolen, steal;

	if (!is_virtual)
		return 0;
	ordered(&t->sequence);
	stolen = READ_ONCE(t->stolen_ns);
	if (READ_ONCE(t->state) == TLOB_RUNNING) {
		steal = own ? steal_of_own_queue() : steal_of_queue(task);
		since = (of_cpu > steal ? of_cpu : steal) - READ_ONCE(t->steal_begin_ns);
	}
	ordered(&t->sequence);
	return (sequence & 1) || READ_ONCE(t->sequence) != sequence ? stolen : stolen + since;
}

#endif
