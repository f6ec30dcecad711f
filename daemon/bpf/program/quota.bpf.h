/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_QUOTA_BPF_H
#define BPF_PROGRAM_QUOTA_BPF_H

#include "bpf/program/task.bpf.h"

/*
 * For how long the CPU quota of a task that waits was used up: its own, or that of a cgroup above.
 * No hook tells when the quota is there again. But the kernel counts, for each queue, how long it
 * was throttled, as soon as that is over; and whether one goes on can be seen at any time.
 */

#define MAX_RT_PRIO 100

/*
 * Is the quota of that task used up? Since Linux 6.18 a task is put aside on its way out of the
 * kernel; before, its queue was, with all that are on it.
 */
static __always_inline bool task_is_throttled(const struct tlob_task *t)
{
	struct task_struct *task = (struct task_struct *)t->task;

	if (bpf_core_field_exists(task->throttled))
		return BPF_CORE_READ(task, throttled);
	if (!bpf_core_field_exists(task->se.cfs_rq->throttle_count))
		return false;
	return BPF_CORE_READ(task, prio) >= MAX_RT_PRIO &&
	       BPF_CORE_READ(task, se.cfs_rq, throttle_count) > 0;
}

/* For how long its queue was throttled, as far as that is over. */
static __always_inline __u64 throttled_ns(const struct tlob_task *t)
{
	struct task_struct *task = (struct task_struct *)t->task;

	if (bpf_core_field_exists(task->se.cfs_rq->throttled_clock_self_time))
		return BPF_CORE_READ(task, se.cfs_rq, throttled_clock_self_time);
	if (bpf_core_field_exists(task->se.cfs_rq->throttled_clock_pelt_time))
		return BPF_CORE_READ(task, se.cfs_rq, throttled_clock_pelt_time);
	return 0;
}

/* Since when it is now; 0: not known. */
static __always_inline __u64 throttled_since(const struct tlob_task *t)
{
	struct task_struct *task = (struct task_struct *)t->task;

	if (!bpf_core_field_exists(task->se.cfs_rq->throttled_clock_self))
		return 0;
	return from_sched_clock(BPF_CORE_READ(task, se.cfs_rq, throttled_clock_self));
}

/* It begins to wait. */
static __always_inline void quota_look(struct tlob_task *t, __u64 now)
{
	__u64 since;

	t->throttled = task_is_throttled(t);
	t->throttled_ns = throttled_ns(t);
	since = t->throttled ? throttled_since(t) : 0;
	t->quota_ns = since && since < now ? now - since : 0;
}

/* How much of a time that ends now is the quota's: since the last look, or less. */
static __always_inline __u64 quota_take(struct tlob_task *t, __u64 ns)
{
	bool before = t->throttled;
	__u64 counted = throttled_ns(t), over = 0, of_quota = 0;

	if (counted > t->throttled_ns)
		over = counted - t->throttled_ns;
	t->throttled = task_is_throttled(t);
	t->throttled_ns = counted;
	if (over) {
		if (over > t->quota_ns)
			of_quota = over - t->quota_ns;
		t->quota_ns = 0;
	} else if (before) {
		of_quota = ns;
		t->quota_ns += ns;
	}
	return of_quota < ns ? of_quota : ns;
}

#endif
