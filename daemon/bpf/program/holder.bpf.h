/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_HOLDER_BPF_H
#define BPF_PROGRAM_HOLDER_BPF_H

#include "bpf/program/cause.bpf.h"
#include "bpf/program/quota.bpf.h"

/*
 * Who has the CPU that a task in a window waits for. While somebody waits for a CPU, each task that
 * leaves it is credited with the time that it had it, with each of those who wait. A window keeps
 * what they had at its start, and the difference is what they took from it.
 *
 * One whose CPU quota is used up would not get the CPU from anybody: the time goes to the quota,
 * which stands among the holders, though nobody, or anybody, may have the CPU meanwhile
 * (quota.bpf.h). That is known also of those who have no place in the list.
 *
 * Changes to the list of a CPU exclude each other: whoever switches or wakes there has the lock of
 * its run queue.
 */

static __always_inline struct tlob_cpu *cpu_at(__u32 cpu)
{
	return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline __u32 task_cpu(struct task_struct *task)
{
	return bpf_core_field_exists(task->thread_info.cpu) ? task->thread_info.cpu
							    : bpf_get_smp_processor_id();
}

#define HOLDER_QUOTA (~0U) /* in kernel_tid */

/* That task has the CPU from now on. In this order: see holder_copy(). */
static __always_inline void cpu_note(struct tlob_cpu *c, struct task_struct *task, __u64 now)
{
	WRITE_ONCE(c->since_ns, now);
	WRITE_ONCE(c->kernel_tid, task->pid);
	ordered(&c->since_ns);
	peer_note(&c->holder, task, now);
}

/* Who has that CPU, if it is still that task; else nobody. */
static __always_inline void holder_copy(struct tlob_peer *to, const struct tlob_cpu *c,
					__u32 kernel_tid)
{
	*to = c->holder;
	ordered(&c->since_ns);
	if (READ_ONCE(c->kernel_tid) != kernel_tid)
		to->time_ns = 0;
}

/*
 * The task in that slot waits for that CPU from now on, which next gets, or has if it is NULL: who
 * that is, is known if it is this CPU, or somebody waits already.
 */
static __always_inline void waiter_add(struct tlob_task *t, __u32 slot, __u32 cpu,
				       struct task_struct *next, __u64 now)
{
	struct tlob_cpu *c = cpu_at(cpu);
	__u32 place = TLOB_CPU_WAITERS_MAX;
	bool known = false, alone = true;
	int i;

	t->wait_cpu = cpu;
	quota_look(t, now);
	t->listed = false;
	if (!c)
		return;
#pragma unroll
	for (i = TLOB_CPU_WAITERS_MAX - 1; i >= 0; i--) {
		if (c->waiters[i] == slot + 1)
			known = true;
		else if (c->waiters[i])
			alone = false;
		else
			place = i;
	}
	if (!next && cpu == bpf_get_smp_processor_id() && alone)
		next = bpf_get_current_task_btf();
	if (next)
		cpu_note(c, next, now);
	else if (alone)
		c->kernel_tid = 0;
	t->listed = known || place < TLOB_CPU_WAITERS_MAX;
	if (known || !t->listed)
		return;
	c->waiters[place] = slot + 1;
	count(n_waiters);
}

/* Somebody who had a CPU, until now. */
struct holding {
	struct tlob_peer peer;
	__u32 kernel_tid; /* 0: the idle task, or not known */
	__u32 reserved;
	__u64 now;
};

static __always_inline __u32 holder_place(const struct tlob_task *t, __u32 kernel_tid)
{
	__u32 least = 0;
	int i;

#pragma unroll
	for (i = 0; i < TLOB_HOLDERS_MAX; i++) {
		if (t->holders[i].kernel_tid == kernel_tid)
			return i;
		if (t->holder_ns[i] < t->holder_ns[least & (TLOB_HOLDERS_MAX - 1)])
			least = i;
	}
	return least;
}

/* Credits it with some of the time before now. */
static __always_inline void holder_add(struct tlob_task *t, __u32 kernel_tid,
				       const struct tlob_peer *peer, __u64 ns, __u64 now)
{
	__u32 place = holder_place(t, kernel_tid) & (TLOB_HOLDERS_MAX - 1);
	struct tlob_holder *holder = &t->holders[place];

	if (holder->kernel_tid != kernel_tid) {
		WRITE_ONCE(t->holder_ns[place], 0);
		holder->since_ns = now - ns;
		holder->kernel_tid = kernel_tid;
	}
	if (kernel_tid == HOLDER_QUOTA) {
		holder->peer.kind = TLOB_PEER_QUOTA;
		holder->peer.time_ns = now; /* nobody need be known */
	} else
		holder->peer = *peer; /* it may have another name by now */
	WRITE_ONCE(t->holder_ns[place], t->holder_ns[place] + ns);
}

/*
 * Credits it, and the quota, with the time since then. Global, so that the verifier looks at it
 * once.
 */
__noinline int holder_credit(__u32 slot, const struct holding *by, __u64 since_ns)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	__u64 ns, of_quota;

	if (!t || !by)
		return 0;
	if (since_ns < t->last_ns)
		since_ns = t->last_ns;
	ns = by->now > since_ns ? by->now - since_ns : 0;
	of_quota = quota_take(t, ns, by->now);
	if (of_quota)
		holder_add(t, HOLDER_QUOTA, &by->peer, of_quota, by->now);
	if (by->kernel_tid && ns > of_quota)
		holder_add(t, by->kernel_tid, &by->peer, ns - of_quota, by->now);
	return 0;
}

/*
 * Since when the current task has had its CPU, as far as that is known. The kernel's own account
 * also knows of a switch that no hook has seen.
 */
static __always_inline __u64 holding_since(const struct tlob_cpu *c, struct task_struct *task)
{
	__u64 since = c->since_ns, arrival = 0;

	if (bpf_core_field_exists(task->sched_info.last_arrival))
		arrival = from_sched_clock(task->sched_info.last_arrival);
	return arrival > since ? arrival : since;
}

/* Is anybody in the list? Somebody may wait elsewhere: here, that is to cost next to nothing. */
static __always_inline bool has_waiters(const struct tlob_cpu *c)
{
	__u32 any = 0;
	int i;

#pragma unroll
	for (i = 0; i < TLOB_CPU_WAITERS_MAX; i++)
		any |= c->waiters[i];
	return any;
}

/*
 * The current task leaves this CPU, for which somebody may wait. Returns how many do. Global, as
 * above.
 */
__noinline int waiters_credit(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id(), slot;
	struct tlob_cpu *c = cpu_at(cpu);
	struct holding by = {};
	struct tlob_task *t;
	__u64 since;
	int i, n = 0;

	if (!c || !has_waiters(c))
		return 0;
	by.now = bpf_ktime_get_ns();
	by.kernel_tid = task->pid;
	peer_note(&by.peer, task, by.now);
	/* One that has ended, and that nobody waits for, has lost its ids by now. */
	if (!by.peer.tid && c->kernel_tid == by.kernel_tid) {
		by.peer.tid = c->holder.tid;
		by.peer.pid = c->holder.pid;
	}
	since = holding_since(c, task);
	for (i = 0; i < TLOB_CPU_WAITERS_MAX; i++) {
		slot = c->waiters[i] - 1;
		if (slot == NO_SLOT)
			continue;
		t = bpf_map_lookup_elem(&tasks, &slot);
		if (t && t->state == TLOB_WAITING && t->wait_cpu == cpu) {
			holder_credit(slot, &by, since);
			n++;
			continue;
		}
		c->waiters[i] = 0;
		__sync_fetch_and_add(&n_waiters, -1);
	}
	return n;
}

/* The task in that slot gets this CPU, and waits for it no longer. Global, as above. */
__noinline int waiter_leaves(__u32 slot)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	__u32 cpu = bpf_get_smp_processor_id();
	struct tlob_cpu *c = cpu_at(cpu);
	int i;

	if (!t || !c)
		return 0;
	t->listed = false;
	/* If it was moved here, it is in the list of another CPU, until that is used. */
	if (t->wait_cpu != cpu)
		return 0;
	for (i = 0; i < TLOB_CPU_WAITERS_MAX; i++)
		if (c->waiters[i] == slot + 1) {
			c->waiters[i] = 0;
			__sync_fetch_and_add(&n_waiters, -1);
			break;
		}
	return 0;
}

/* That CPU goes to another task, and somebody waits for it. */
static __always_inline void cpu_given_to(struct task_struct *next)
{
	struct tlob_cpu *c = cpu_at(bpf_get_smp_processor_id());

	if (c)
		cpu_note(c, next, bpf_ktime_get_ns());
}

/*
 * The task in that slot is to wait for another CPU from now on. Who will have that one is not
 * known: nobody here has the lock of its run queue. Global, as above.
 */
__noinline int waiter_moves(__u32 slot, __u64 now)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct holding by = { .now = now };
	struct tlob_cpu *c;
	__u64 since = 0;

	if (!t)
		return 0;
	c = cpu_at(t->wait_cpu);
	WRITE_ONCE(t->wait_cpu, TLOB_NO_CPU);
	if (!c)
		return 0;
	if (t->listed) {
		by.kernel_tid = READ_ONCE(c->kernel_tid);
		by.peer = c->holder;
		since = READ_ONCE(c->since_ns);
	}
	holder_credit(slot, &by, since);
	return 0;
}

/*
 * The task in that slot gets its CPU, and has waited in no list: who had it is not known, but what
 * of the time was the quota's is. Global, as above.
 */
__noinline int waiter_arrives(__u32 slot, __u64 now)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct holding by = { .now = now };

	/* What was looked at belongs to another queue if it was moved. */
	if (t && t->wait_cpu != TLOB_NO_CPU)
		holder_credit(slot, &by, t->last_ns);
	return 0;
}

/* How long a holder kept a window waiting. */
static __always_inline __u64 held_ns(const struct tlob_task *t, const struct tlob_window *w,
				     __u32 place)
{
	__u64 ns = READ_ONCE(t->holder_ns[place]);

	if (t->holders[place].since_ns >= w->start_ns)
		return ns;
	return ns > w->holder_ns[place] ? ns - w->holder_ns[place] : 0;
}

/* For how long a CPU that the task waits for has been with whoever has it now, or the quota. */
static __always_inline __u64 held_now_ns(const struct tlob_task *t, const struct tlob_cpu *c,
					 __u64 now)
{
	__u64 since = READ_ONCE(c->since_ns);

	if (since < t->last_ns || !t->listed)
		since = t->last_ns;
	return now > since ? now - since : 0;
}

#define HOLDER_NONE    -1
#define HOLDER_CURRENT -2

/*
 * Who had the CPU for more than half of the time that a window waited: a place among the holders,
 * or whoever has it now (kernel_tid), for longer than it is credited with (current_ns).
 */
static __always_inline int holder_find(__u32 slot, __u32 place, __u64 waiting_ns, __u32 kernel_tid,
				       __u64 current_ns)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	__u64 most = 0, ns;
	int i, found = HOLDER_NONE;

	if (!t || place >= TLOB_WINDOWS_MAX)
		return HOLDER_NONE;
#pragma unroll
	for (i = 0; i < TLOB_HOLDERS_MAX; i++) {
		ns = held_ns(t, window_at(t, place), i);
		if (t->holders[i].kernel_tid == kernel_tid) {
			ns += current_ns;
			current_ns = 0;
		}
		if (ns > most) {
			most = ns;
			found = i;
		}
	}
	if (current_ns > most) {
		most = current_ns;
		found = HOLDER_CURRENT;
	}
	return 2 * most > waiting_ns ? found : HOLDER_NONE;
}

/* Tells it, if the window has waited at all. */
static __always_inline void holder_tell(struct tlob_peer *to, const struct tlob_task *t, __u32 slot,
					__u32 place, __u64 waiting_ns, __u32 state, __u64 now)
{
	struct tlob_cpu *c = state == TLOB_WAITING ? cpu_at(t->wait_cpu) : NULL;
	/* That is noted for those who are in the list. */
	__u32 kernel_tid = c && t->listed ? READ_ONCE(c->kernel_tid) : 0;
	int found;

	to->time_ns = 0;
	if (!waiting_ns)
		return;
	if (c && READ_ONCE(t->throttled) && task_is_throttled(t, queue_of(t)))
		kernel_tid = HOLDER_QUOTA;
	found = holder_find(slot, place, waiting_ns, kernel_tid,
			    kernel_tid ? held_now_ns(t, c, now) : 0);
	if (found >= 0 && found < TLOB_HOLDERS_MAX)
		*to = t->holders[found].peer;
	else if (found == HOLDER_CURRENT && kernel_tid == HOLDER_QUOTA)
		*to = (struct tlob_peer){ .time_ns = now, .kind = TLOB_PEER_QUOTA };
	else if (found == HOLDER_CURRENT && c)
		holder_copy(to, c, kernel_tid);
}

#endif
