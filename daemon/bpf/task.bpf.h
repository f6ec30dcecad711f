/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TASK_BPF_H
#define TASK_BPF_H

#include "maps.bpf.h"

/*
 * Tasks: from a task_struct to its slot, the totals of its three states, and looking at them while
 * they change. Nothing here knows of windows.
 */

/* The totals of a task at one moment. */
struct snapshot {
	__u64 now;
	__u64 total_ns[TLOB_N_STATES];
};

#define NO_SLOT		 (~0U)
#define PIDNS_LEVELS_MAX 32 /* MAX_PID_NS_LEVEL */

/* Could the task have a slot? Most have not, and that is to cost next to nothing. */
static __always_inline bool task_may_have_slot(struct task_struct *task)
{
	return task->bpf_storage || READ_ONCE(n_unstored);
}

/*
 * The slot of a task, or NO_SLOT. Before Linux 6.2 a look into task storage fails while another
 * program on this CPU is inside one, which on a preemptible kernel can last; and the storage of a
 * task may have had no room for it. Then the hash tells.
 */
static __always_inline __u32 task_slot(struct task_struct *task)
{
	__u64 key = (__u64)task;
	__u32 *slot = NULL;

	if (!task_may_have_slot(task))
		return NO_SLOT;
	if (task->bpf_storage)
		slot = bpf_task_storage_get(&slots, task, NULL, 0);
	if (!slot)
		slot = bpf_map_lookup_elem(&slots_by_task, &key);

	return slot ? *slot : NO_SLOT;
}

static __always_inline struct tlob_task *task_at(__u32 slot, struct task_struct *task)
{
	struct tlob_task *t;

	if (slot == NO_SLOT)
		return NULL;

	t = bpf_map_lookup_elem(&tasks, &slot);
	return t && t->task == (__u64)task ? t : NULL;
}

/*
 * Both for the task that runs on this CPU, quicker: the hook on task switches notes the last one with a
 * slot. That is believed only if the slot agrees.
 */
static __always_inline __u32 *current_slot_place(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&current_slots, &key);
}

static __always_inline void current_slot_set(__u32 slot)
{
	__u32 *place = current_slot_place();

	if (place && *place != slot + 1)
		WRITE_ONCE(*place, slot + 1);
}

static __always_inline struct tlob_task *task_current(struct task_struct *current, __u32 *ret_slot)
{
	__u32 *place = current_slot_place();
	__u32 slot = place ? READ_ONCE(*place) - 1 : NO_SLOT;
	struct tlob_task *t = task_at(slot, current);

	if (!t) {
		slot = task_slot(current);
		t = task_at(slot, current);
	}
	*ret_slot = t ? slot : NO_SLOT;
	return t;
}

/* The id of a task as the daemon sees it, 0 if it cannot. */
static __noinline __u32 pid_in_namespace(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	unsigned int i, level = BPF_CORE_READ(pid, level);
	void *upid = __builtin_preserve_access_index(&pid->numbers[0]);

	for (i = 0; i < PIDNS_LEVELS_MAX && i <= level; i++) {
		struct upid *u = upid + i * bpf_core_type_size(struct upid);

		if (BPF_CORE_READ(u, ns, ns.inum) == pidns_inum)
			return BPF_CORE_READ(u, nr);
	}
	return 0;
}

static __always_inline void slots_grow(__u32 slot)
{
	__u32 old = READ_ONCE(slots_end);
	int i;

	for (i = 0; i < 8 && old <= slot; i++)
		old = __sync_val_compare_and_swap(&slots_end, old, slot + 1);
}

static __always_inline void task_forget_deadlines(struct tlob_task *t)
{
	WRITE_ONCE(t->next_ns, TLOB_NEVER);
	WRITE_ONCE(t->next_total_ns[TLOB_RUNNING], TLOB_NEVER);
	WRITE_ONCE(t->next_total_ns[TLOB_WAITING], TLOB_NEVER);
	WRITE_ONCE(t->next_total_ns[TLOB_SLEEPING], TLOB_NEVER);
}

static __always_inline __u64 run_delay(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.run_delay) ? task->sched_info.run_delay : 0;
}

/* Gives the current task a slot. The hooks see it from the moment that it is in the storage. */
static __noinline __u32 task_new(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 key = (__u64)task;
	struct tlob_task *t;
	__u32 slot, *stored;

	if (bpf_map_pop_elem(&free_slots, &slot))
		return NO_SLOT;
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (!t)
		return NO_SLOT;

	slots_grow(slot);

	t->task = key;
	t->tid = pidns_inum ? pid_in_namespace(task) : task->pid;
	t->pid = pidns_inum ? pid_in_namespace(task->group_leader) : task->tgid;
	t->kernel_tid = task->pid;
	t->woken_by.time_ns = t->preempted_by.time_ns = t->ran_before.time_ns = 0;
	t->state = TLOB_RUNNING;
	t->run_delay_ns = run_delay(task);
	t->last_ns = bpf_ktime_get_ns();
	task_forget_deadlines(t);

	if (bpf_map_update_elem(&slots_by_task, &key, &slot, BPF_ANY)) {
		t->task = 0;
		bpf_map_push_elem(&free_slots, &slot, 0);
		return NO_SLOT;
	}
	/*
	 * It may fail: before Linux 6.2 as in task_slot(); from 6.19 on it takes memory without a
	 * lock, which needs cmpxchg16b. It may be there, if to delete it failed so.
	 */
	stored = bpf_task_storage_get(&slots, task, &slot, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (stored)
		*stored = slot;
	t->unstored = !stored;
	if (t->unstored)
		__sync_fetch_and_add(&n_unstored, 1);
	current_slot_set(slot);
	return slot;
}

/*
 * Takes the slot of the current task away; its windows must have ended. What is left to do is to delete
 * the task's storage, which cannot be done everywhere.
 */
static __always_inline void task_free(struct tlob_task *t, __u32 slot)
{
	__u64 key = t->task;

	WRITE_ONCE(t->task, 0);
	bpf_map_delete_elem(&slots_by_task, &key);
	if (t->unstored)
		__sync_fetch_and_add(&n_unstored, -1);
	bpf_map_push_elem(&free_slots, &slot, 0);
}

/*
 * The totals of a task are about to change: that is said first, and the clock is read after it. So
 * whoever looks from elsewhere, at the clock and then again whether it was said, has looked at the
 * clock before us. Else it could find a task asleep, by its clock, for longer than it will have slept.
 *
 * Odd while they change, also when a hook comes upon the task in the middle of task_found_running().
 */
static __always_inline void task_change(struct tlob_task *t)
{
	/* A full barrier. */
	__sync_lock_test_and_set(&t->sequence, (t->sequence + 1) | 1);
}

/* After task_change(): credits the time since the last change to the state of the task. */
static __always_inline void task_credit(struct tlob_task *t, __u64 now)
{
	__u32 state = t->state;

	/* The clock may step back between CPUs. */
	if (state < TLOB_N_STATES && now > t->last_ns) {
		t->total_ns[state] += now - t->last_ns;
		t->last_ns = now;
	}
}

/* After task_change(), at a time read since: ends the state of the task, and enters the next one. */
static __always_inline void task_account(struct tlob_task *t, __u32 next, __u64 now)
{
	task_credit(t, now);
	t->state = next;
	ordered();
	WRITE_ONCE(t->sequence, (t->sequence | 1) + 1);
}

/*
 * The current task is running, and no hook has seen it get its CPU: a virtual machine was met whose
 * kernel does not tell of the switches from some tasks. That is made good here, and counted. The
 * kernel's own account says for how long the task has waited since it left its CPU.
 */
static __noinline void task_found_running(struct tlob_task *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 now, got_cpu;

	count(n_missed_switches);
	task_change(t);
	now = bpf_ktime_get_ns();
	if (t->state == TLOB_WAITING && bpf_core_field_exists(task->sched_info.run_delay)) {
		got_cpu = t->last_ns + (run_delay(task) - t->run_delay_ns);
		task_credit(t, got_cpu < now ? got_cpu : now);
		t->state = TLOB_RUNNING;
	}
	task_account(t, TLOB_RUNNING, now);
}

static __always_inline void task_must_run(struct tlob_task *t)
{
	if (READ_ONCE(t->state) != TLOB_RUNNING)
		task_found_running(t);
}

/* For the current task: repeated when a hook came in between, so as good as atomic. */
static __always_inline void task_snapshot(struct tlob_task *t, struct snapshot *ret)
{
	__u64 sequence, last;
	int i;

	task_must_run(t);
	for (i = 0; i < 16; i++) {
		sequence = READ_ONCE(t->sequence);
		ret->now = bpf_ktime_get_ns();
		last = READ_ONCE(t->last_ns);
		if (ret->now < last)
			ret->now = last;
		ret->total_ns[TLOB_RUNNING] =
			READ_ONCE(t->total_ns[TLOB_RUNNING]) + ret->now - last;
		ret->total_ns[TLOB_WAITING] = READ_ONCE(t->total_ns[TLOB_WAITING]);
		ret->total_ns[TLOB_SLEEPING] = READ_ONCE(t->total_ns[TLOB_SLEEPING]);
		if (READ_ONCE(t->sequence) == sequence)
			return;
	}
}

/*
 * For the current task, when windows of it are about to end at the moment that this gives. Until they
 * have, no timer may find them over budgets that they have kept: it looks at "ending" after it has
 * looked at the clock, and leaves them alone. Ends with task_ended().
 */
static __always_inline void task_ending(struct tlob_task *t, struct snapshot *ret)
{
	/* A full barrier: who still finds 0 has looked at the clock before us. */
	__sync_lock_test_and_set(&t->ending, 1);
	task_snapshot(t, ret);
}

static __always_inline void task_ended(struct tlob_task *t)
{
	ordered();
	WRITE_ONCE(t->ending, 0);
}

/*
 * For any task, from anywhere. Fails when hooks change the totals all the time that it looks, and
 * while windows of the task are ending.
 */
static __always_inline bool task_snapshot_remote(struct tlob_task *t, struct snapshot *ret,
						 __u32 *ret_state)
{
	__u64 sequence, last, past;
	__u32 state;
	int i;

	for (i = 0; i < 16; i++) {
		sequence = READ_ONCE(t->sequence);
		ordered();
		ret->now = bpf_ktime_get_ns();
		last = READ_ONCE(t->last_ns);
		state = READ_ONCE(t->state);
		ret->total_ns[TLOB_RUNNING] = READ_ONCE(t->total_ns[TLOB_RUNNING]);
		ret->total_ns[TLOB_WAITING] = READ_ONCE(t->total_ns[TLOB_WAITING]);
		ret->total_ns[TLOB_SLEEPING] = READ_ONCE(t->total_ns[TLOB_SLEEPING]);
		ordered();
		if ((sequence & 1) || READ_ONCE(t->sequence) != sequence)
			continue;
		if (READ_ONCE(t->ending))
			return false;

		past = ret->now > last ? ret->now - last : 0;
		ret->now = last + past;
		if (state == TLOB_RUNNING)
			ret->total_ns[TLOB_RUNNING] += past;
		else if (state == TLOB_WAITING)
			ret->total_ns[TLOB_WAITING] += past;
		else
			ret->total_ns[TLOB_SLEEPING] += past;
		*ret_state = state;
		return true;
	}
	return false;
}

#endif
