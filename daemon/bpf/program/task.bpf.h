/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_TASK_BPF_H
#define BPF_PROGRAM_TASK_BPF_H

#include "bpf/program/steal.bpf.h"

/*
 * Tasks: from a task_struct to its slot, the totals of its three states, and looking at them while
 * they change. Nothing here knows of windows.
 */

/* The totals of a task at one moment. */
struct snapshot {
	__u64 now;
	__u64 total_ns[TLOB_N_STATES];
	__u64 n_sleeps; /* how often the task had fallen asleep by then */
};

/*
 * A place among the windows of a task. Linux 6.1's verifier forgets what was checked of an index
 * when that is kept on the stack: here is none that could be out of bounds.
 */
static __always_inline __u64 place_masked(__u64 place)
{
	asm volatile("%0 &= %1" : "+r"(place) : "i"(TLOB_WINDOWS_MAX - 1));
	return place;
}

#define window_at(t, place) (&(t)->windows[place_masked(place)])
#define open_at(t, place)   (&(t)->open[place_masked(place)])

#define NO_SLOT		 (~0U)
#define PIDNS_LEVELS_MAX 32 /* MAX_PID_NS_LEVEL */

/* Could a task have a slot? Most have not, and that is to cost next to nothing. */
static __always_inline bool may_have_slot(bool has_storage)
{
	return has_storage || READ_ONCE(n_unstored);
}

static __always_inline bool task_may_have_slot(struct task_struct *task)
{
	return may_have_slot(task->bpf_storage);
}

/*
 * The slot of a task, or NO_SLOT. Before Linux 6.2 a look into task storage fails while another
 * program on this CPU is inside one, which on a preemptible kernel can last; and the storage of a
 * task may have had no room for it. Then the hash tells.
 */
static __always_inline __u32 task_slot(struct task_struct *task)
{
	bool has_storage = task->bpf_storage;
	__u64 key = (__u64)task;
	__u32 *slot = NULL;

	if (!may_have_slot(has_storage))
		return NO_SLOT;
	if (has_storage)
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
 * Both for the task that runs on this CPU, quicker: the hook on task switches notes the last one
 * with a slot. That is believed only if the slot agrees.
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

static __always_inline __u64 queued_since(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.last_queued) ? task->sched_info.last_queued
								   : 0;
}

/*
 * Is the current task the daemon's own, or a process that it has started, or one that this has
 * started, to read files? What reports do to that would cause the next report. To be asked when it
 * has no slot: such a task never gets one. Global, so that the verifier looks at it once.
 */
__noinline int task_is_ours(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	int own = READ_ONCE(own_tgid);

	return own &&
	       (task->tgid == own || BPF_CORE_READ(task, group_leader, real_parent, tgid) == own ||
		BPF_CORE_READ(task, group_leader, real_parent, real_parent, tgid) == own);
}

#define MMF_DUMPABLE_MASK 3
#define SUID_DUMP_USER	  1

static __always_inline unsigned long mm_flags(struct mm_struct *mm)
{
	struct mm_struct___bitmap *bitmap = (void *)mm;

	if (bpf_core_field_exists(bitmap->flags.__mm_flags))
		return BPF_CORE_READ(bitmap, flags.__mm_flags[0]);
	return BPF_CORE_READ(mm, flags);
}

/* May the user who has the task look into it? */
static __always_inline bool task_is_dumpable(struct task_struct *task, struct mm_struct *mm)
{
	if (bpf_core_field_exists(task->exec_state))
		return BPF_CORE_READ(task, exec_state, dumpable) == TASK_DUMPABLE_OWNER;
	return (mm_flags(mm) & MMF_DUMPABLE_MASK) == SUID_DUMP_USER;
}

/*
 * May that user look into the current task, as with ptrace()? Not into one that has more rights by
 * its program: a file that is setuid, or has capabilities. Global, so that the verifier looks at it
 * once.
 */
__noinline int task_is_owned_by(__u32 user)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct cred *cred = BPF_CORE_READ(task, cred);
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	return mm && BPF_CORE_READ(cred, uid.val) == user &&
	       BPF_CORE_READ(cred, euid.val) == user && BPF_CORE_READ(cred, suid.val) == user &&
	       task_is_dumpable(task, mm);
}

static __always_inline void holders_forget(struct tlob_task *t)
{
	int i;

#pragma unroll
	for (i = 0; i < TLOB_HOLDERS_MAX; i++)
		t->holder_ns[i] = t->holders[i].kernel_tid = 0;
}

/* All slots are taken: the daemon is told the first time. */
static __always_inline void tasks_refuse(void)
{
	__u32 type = TLOB_RECORD_NOTICE;

	if (__sync_fetch_and_add(&n_tasks_refused, 1) == 0)
		bpf_ringbuf_output(&records, &type, sizeof(type), 0);
}

/*
 * A task keeps its slot, which is quicker than to give it a new one for each window. When more than
 * half of them are taken, a task without a window gives its slot back when it falls asleep: else
 * threads that were measured once and sleep for ever would leave none for others.
 */
static __always_inline bool slots_are_short(void)
{
	return READ_ONCE(slots_used) > slots_max / 2;
}

/* Of the current task, in that slot. Global, so that the verifier looks at it once. */
__noinline int task_note_ids(__u32 slot)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct task_struct *task = bpf_get_current_task_btf();

	if (!t)
		return 0;
	t->tid = pidns_inum ? pid_in_namespace(task) : task->pid;
	t->pid = pidns_inum ? pid_in_namespace(task->group_leader) : task->tgid;
	t->kernel_tid = task->pid;
	return 0;
}

/* Returns whether there is one. */
static __always_inline bool slot_pop(__u32 *slot)
{
	return !bpf_map_pop_elem(&free_slots, slot) || !bpf_map_pop_elem(&free_untimed_slots, slot);
}

static __always_inline void slot_push(__u32 slot)
{
	if (slot < READ_ONCE(slots_timed))
		bpf_map_push_elem(&free_slots, &slot, 0);
	else
		bpf_map_push_elem(&free_untimed_slots, &slot, 0);
}

/*
 * Gives the current task a slot. The hooks see it from the moment that it is in the storage.
 * Global, as above.
 */
__noinline __u32 task_new(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 key = (__u64)task;
	struct tlob_task *t;
	__u32 slot, *stored;

	if (!slot_pop(&slot)) {
		tasks_refuse();
		return NO_SLOT;
	}
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (!t)
		return NO_SLOT;

	slots_grow(slot);

	t->task = key;
	task_note_ids(slot);
	t->n_sleeps = t->over_sleep = t->woken_by.time_ns = 0;
	holders_forget(t);
	t->state = TLOB_RUNNING;
	t->arrived = false;
	t->elsewhere = t->calls = 0;
	t->unwinding_epoch = 0;
	t->lane = 0;
	t->lowest_frame = TLOB_NEVER;
	t->stack_end = t->stack_is_known = 0;
	t->run_delay_ns = run_delay(task);
	t->last_ns = bpf_ktime_get_ns();
	steal_begin(t);
	task_forget_deadlines(t);

	if (bpf_map_update_elem(&slots_by_task, &key, &slot, BPF_ANY)) {
		t->task = 0;
		slot_push(slot);
		return NO_SLOT;
	}
	/*
	 * It may fail: before Linux 6.2 as in task_slot(); from 6.19 on it takes memory without a
	 * lock, which needs cmpxchg16b. It may be there, if to delete it failed so.
	 */
	stored = bpf_task_storage_get(&slots, task, &slot, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (stored)
		*stored = slot;
	__sync_fetch_and_add(&slots_used, 1);
	t->unstored = !stored;
	if (t->unstored)
		__sync_fetch_and_add(&n_unstored, 1);
	current_slot_set(slot);
	return slot;
}

/*
 * Takes the slot of the current task away; its windows must have ended. What is left to do is to
 * delete the task's storage, which cannot be done everywhere.
 */
static __always_inline void task_free(struct tlob_task *t, __u32 slot)
{
	__u64 key = t->task;

	/* Its timer may still be armed, and finds nothing to do. */
	task_forget_deadlines(t);
	WRITE_ONCE(t->task, 0);
	bpf_map_delete_elem(&slots_by_task, &key);
	if (t->unstored)
		__sync_fetch_and_add(&n_unstored, -1);
	__sync_fetch_and_add(&slots_used, -1);
	slot_push(slot);
}

/*
 * The totals of a task are about to change: that is said first, and the clock is read after it. So
 * whoever looks from elsewhere, at the clock and then again whether it was said, has looked at the
 * clock before us. Else it could find a task asleep, by its clock, for longer than it will have
 * slept.
 *
 * Odd while they change, also when a hook comes upon the task in the middle of
 * task_found_running().
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

/*
 * After task_change(), at a time read since: ends the state of the task, and enters the next one.
 */
static __always_inline void task_account(struct tlob_task *t, __u32 next, __u64 now)
{
	task_credit(t, now);
	if (t->state == TLOB_RUNNING)
		steal_end(t);
	if (next == TLOB_RUNNING)
		steal_begin(t);
	t->state = next;
	ordered(&t->sequence);
	WRITE_ONCE(t->sequence, (t->sequence | 1) + 1);
}

/*
 * Moments by the scheduler's clock, which the kernel notes with each task, in CLOCK_MONOTONIC. The
 * two run equally fast, but for what the latter is adjusted by: how far they are apart is measured
 * each time that a task leaves its CPU, if a hook has seen it get it. The hook comes after the
 * kernel's note, sometimes much later, where a hypervisor takes the CPU away: so what is less is
 * believed at once, what is more bit by bit, unless a clock has been set.
 */
#define SCHED_CLOCK_SLACK_NS 1000
#define SCHED_CLOCK_PART     16
#define SCHED_CLOCK_JUMP_NS  100000000

static __always_inline __u64 *sched_clock_offset(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&sched_clock_offsets, &key);
}

static __always_inline void sched_clock_compare(const struct tlob_task *t, struct task_struct *task)
{
	__u64 *known, offset;
	__s64 more;

	if (!t->arrived || !bpf_core_field_exists(task->sched_info.last_arrival))
		return;
	known = sched_clock_offset();
	if (!known)
		return;
	offset = t->last_ns - task->sched_info.last_arrival;
	more = offset - *known;
	if (!*known || more < 0 || more > SCHED_CLOCK_JUMP_NS)
		*known = offset;
	else if (more > SCHED_CLOCK_SLACK_NS)
		*known += more / SCHED_CLOCK_PART;
}

/* By the clock of this CPU. 0: not known. */
static __always_inline __u64 from_sched_clock(__u64 ns)
{
	__u64 *offset = sched_clock_offset();

	return ns && offset && *offset ? ns + *offset : 0;
}

/*
 * Credits the time up to a moment that may be wrong, but is no later than now; enters a state then.
 */
static __always_inline void task_account_past(struct tlob_task *t, __u32 next, __u64 when,
					      __u64 now)
{
	task_credit(t, when < now ? when : now);
	t->state = next;
}

/*
 * A virtual machine was met whose kernel does not tell of the switches from some tasks, and of the
 * wakeups of others. That is made good when it is seen, and counted. The kernel's own account says
 * since when the task was on a run queue, and how long it waited there.
 *
 * Here for a task that gets a CPU and should be asleep; after task_change(). One that was moved to
 * another CPU meanwhile is on its queue since then, and the wait on the former one is counted; also
 * if it was moved back (TLOB_CPU_LEFT). Not if it stayed: Linux 7.3 was met to count some of a
 * sleep, too.
 */
static __noinline void task_found_awake(struct tlob_task *t, struct task_struct *task, __u64 now)
{
	__u64 queued = from_sched_clock(queued_since(task)), before = 0;

	count(n_missed_wakeups);
	if ((__u16)bpf_get_smp_processor_id() != t->last_cpu)
		before = run_delay(task) - t->run_delay_ns;
	if (queued)
		task_account_past(t, TLOB_WAITING, queued - before, now);
}

/* The same for the current task, when no hook has seen it get its CPU. */
static __noinline void task_found_running(struct tlob_task *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 now, arrival = 0, delay = 0;

	if (bpf_core_field_exists(task->sched_info.run_delay)) {
		arrival = from_sched_clock(task->sched_info.last_arrival);
		delay = run_delay(task) - t->run_delay_ns;
	}
	task_change(t);
	now = bpf_ktime_get_ns();
	if (t->state == TLOB_SLEEPING) {
		count(n_missed_wakeups);
		if (arrival > delay)
			task_account_past(t, TLOB_WAITING, arrival - delay, now);
	} else
		count(n_missed_switches);
	if (t->state == TLOB_WAITING && (arrival || delay)) {
		task_account_past(t, TLOB_RUNNING, arrival ? arrival : t->last_ns + delay, now);
		/* What was stolen since it got its CPU is not known. */
		steal_begin(t);
	}
	task_account(t, TLOB_RUNNING, now);
	t->arrived = false;
}

/* Is a task on a run queue, or has a CPU, that the hooks have last seen fall asleep? */
static __always_inline bool task_is_awake(const struct tlob_task *t)
{
	struct task_struct *task = (struct task_struct *)t->task;

	return !BPF_CORE_READ(task, __state);
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
	for (i = 0; i < 8; i++) {
		sequence = READ_ONCE(t->sequence);
		ret->now = bpf_ktime_get_ns();
		last = READ_ONCE(t->last_ns);
		if (ret->now < last)
			ret->now = last;
		ret->total_ns[TLOB_RUNNING] =
			READ_ONCE(t->total_ns[TLOB_RUNNING]) + ret->now - last;
		ret->total_ns[TLOB_WAITING] = READ_ONCE(t->total_ns[TLOB_WAITING]);
		ret->total_ns[TLOB_SLEEPING] = READ_ONCE(t->total_ns[TLOB_SLEEPING]);
		ret->n_sleeps = READ_ONCE(t->n_sleeps);
		if (READ_ONCE(t->sequence) == sequence)
			return;
	}
}

/*
 * For the current task, when windows of it are about to end at the moment that this gives. Until
 * they have, no timer may find them over budgets that they have kept: it looks at "ending" after it
 * has looked at the clock, and leaves them alone. Ends with task_ended().
 */
static __always_inline void task_ending(struct tlob_task *t, struct snapshot *ret)
{
	/* A full barrier: who still finds 0 has looked at the clock before us. */
	__sync_lock_test_and_set(&t->ending, 1);
	task_snapshot(t, ret);
}

static __always_inline void task_ended(struct tlob_task *t)
{
	ordered(&t->sequence);
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
		ordered(&t->sequence);
		ret->now = bpf_ktime_get_ns();
		last = READ_ONCE(t->last_ns);
		state = READ_ONCE(t->state);
		ret->total_ns[TLOB_RUNNING] = READ_ONCE(t->total_ns[TLOB_RUNNING]);
		ret->total_ns[TLOB_WAITING] = READ_ONCE(t->total_ns[TLOB_WAITING]);
		ret->total_ns[TLOB_SLEEPING] = READ_ONCE(t->total_ns[TLOB_SLEEPING]);
		ret->n_sleeps = READ_ONCE(t->n_sleeps);
		ordered(&t->sequence);
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
		else if (state == TLOB_SLEEPING)
			ret->total_ns[TLOB_SLEEPING] += past;
		*ret_state = state;
		return true;
	}
	return false;
}

#endif
