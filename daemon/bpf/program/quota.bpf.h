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

static __always_inline struct cfs_rq *queue_of(const struct tlob_task *t)
{
	struct task_struct *task = (struct task_struct *)t->task;

	return bpf_core_field_exists(task->se.cfs_rq) ? BPF_CORE_READ(task, se.cfs_rq) : NULL;
}

/* Tasks of other classes have a queue, too, which does not hold them back. */
static __always_inline bool task_is_fair(const struct tlob_task *t)
{
	struct task_struct *task = (struct task_struct *)t->task;

	return BPF_CORE_READ(task, prio) >= MAX_RT_PRIO;
}

/*
 * Since Linux 6.18 a task is put aside on its way out of the kernel; before, its queue was, with
 * all that are on it. A task that comes into another class remains marked.
 */
static __always_inline bool task_is_throttled(const struct tlob_task *t, struct cfs_rq *queue)
{
	struct task_struct *task = (struct task_struct *)t->task;

	if (!bpf_core_field_exists(queue->throttle_count))
		return false;
	if (bpf_core_field_exists(task->throttled) && !BPF_CORE_READ(task, throttled))
		return false;
	return task_is_fair(t) && BPF_CORE_READ(queue, throttle_count) > 0;
}

/* Is it held back by what happens to its queue, where it waits already? */
static __always_inline bool task_may_be_throttled(const struct tlob_task *t)
{
	struct task_struct *task = (struct task_struct *)t->task;

	return !bpf_core_field_exists(task->throttled) && task_is_fair(t);
}

/* For how long a queue was throttled, as far as that is over. */
static __always_inline __u64 throttled_ns(struct cfs_rq *queue)
{
	if (bpf_core_field_exists(queue->throttled_clock_self_time))
		return BPF_CORE_READ(queue, throttled_clock_self_time);
	if (bpf_core_field_exists(queue->throttled_clock_pelt_time))
		return BPF_CORE_READ(queue, throttled_clock_pelt_time);
	return 0;
}

/* Since when it is now; 0: not known. */
static __always_inline __u64 throttled_since(struct cfs_rq *queue)
{
	return bpf_core_field_exists(queue->throttled_clock_self)
		       ? from_sched_clock(BPF_CORE_READ(queue, throttled_clock_self))
		       : 0;
}

/* It begins to wait. */
static __always_inline void quota_look(struct tlob_task *t, __u64 now)
{
	struct cfs_rq *queue = queue_of(t);
	__u64 since;

	t->queue = (__u64)queue;
	t->throttled = task_is_throttled(t, queue);
	t->throttled_ns = throttled_ns(queue);
	since = t->throttled ? throttled_since(queue) : 0;
	t->quota_ns = since && since < now ? now - since : 0;
}

/* How much of a time that ends now is the quota's: since the last look, or less. */
static __always_inline __u64 quota_take(struct tlob_task *t, __u64 ns, __u64 now)
{
	struct cfs_rq *queue = queue_of(t);
	__u64 counted = throttled_ns(queue), over = 0, of_quota = 0;
	bool before = t->throttled;

	/* In another cgroup. */
	if ((__u64)queue != t->queue) {
		quota_look(t, now);
		return before && t->throttled ? ns : 0;
	}
	if (counted > t->throttled_ns && (before || task_may_be_throttled(t)))
		over = counted - t->throttled_ns;
	t->throttled = task_is_throttled(t, queue);
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
