/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_CAUSE_BPF_H
#define BPF_PROGRAM_CAUSE_BPF_H

#include "bpf/program/task.bpf.h"

/*
 * Why a window takes so long, for tasks that have one: where in the kernel a sleeper is blocked,
 * who woke it, who had its CPU. Noted as it happens, and told with the reports.
 */

/*
 * The stack of a task can be taken through the task, when it is needed, where a timer may find the
 * task (Linux 6.2); else each time that it goes to sleep. Set before loading, the first by trial.
 */
const volatile bool stack_from_task = false;

struct task_struct *bpf_task_from_pid(__s32 pid) __ksym __weak;
void bpf_task_release(struct task_struct *task) __ksym __weak;

/*
 * Places in the kernel, from the one address to before the other; see struct tlob_symbols. 0: not
 * known.
 */
const volatile __u64 interrupts[2] = {};
const volatile __u64 softirqs[2] = {};
const volatile __u64 network[2] = {};

/* A task may have any bytes there; the terminator is among them. */
static __always_inline void comm_copy(char *to, struct task_struct *task)
{
	const __u64 *from = (const __u64 *)__builtin_preserve_access_index(&task->comm);

	((__u64 *)to)[0] = from[0];
	((__u64 *)to)[1] = from[1];
}

static __always_inline void peer_note(struct tlob_peer *peer, struct task_struct *task, __u64 now)
{
	peer->time_ns = now;
	peer->tid = pidns_inum ? pid_in_namespace(task) : task->pid;
	peer->pid = pidns_inum ? pid_in_namespace(task->group_leader) : task->tgid;
	peer->kind = TLOB_PEER_TASK;
	comm_copy(peer->comm, task);
}

#define IS_IN(address, text) ((address) - (text)[0] < (text)[1] - (text)[0])

/*
 * Does this code do what is an interrupt's business, not the current task's? Its stack tells. A
 * task also does what interrupts have left to do, whosever it is; only a packet that is received so
 * has most likely been sent by the task itself, to this machine.
 */
static __always_inline bool in_interrupt(void *ctx, struct tlob_stack *stack)
{
	bool softirq = false, packet = false;
	__u32 i;

	stack->size = bpf_get_stack(ctx, stack->ip, sizeof(stack->ip), 0);
	for (i = 0; i < TLOB_STACK_MAX; i++) {
		/* Beyond that it is another's, of before. */
		if ((__s64)((i + 1) * sizeof(stack->ip[0])) > stack->size)
			break;
		if (IS_IN(stack->ip[i], interrupts))
			return true;
		if (IS_IN(stack->ip[i], softirqs))
			softirq = true;
		else if (IS_IN(stack->ip[i], network))
			packet = true;
	}
	/* A thread of the kernel has sent nothing. */
	return softirq && !(packet && bpf_get_current_task_btf()->mm);
}

/*
 * Whoever runs on this CPU wakes the task of that slot. Where nobody can tell a task from an
 * interrupt handler that came upon it, nothing is said.
 */
static __always_inline void waker_note(void *ctx, struct tlob_task *t, __u64 now)
{
	__u32 zero = 0;
	struct tlob_stack *stack = bpf_map_lookup_elem(&waker_stacks, &zero);

	if (!interrupts[1] || !stack)
		return;
	peer_note(&t->woken_by, bpf_get_current_task_btf(), now);
	if (in_interrupt(ctx, stack))
		t->woken_by.kind = TLOB_PEER_INTERRUPT;
}

/*
 * The task in that slot falls asleep again: windows whose budget ran out in its last sleep keep who
 * woke it then. Global, so that the verifier looks at it once.
 */
__noinline int wakers_keep(__u32 slot)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	__u32 i;

	if (!t)
		return 0;
	for (i = 0; i < TLOB_WINDOWS_MAX; i++)
		if (READ_ONCE(t->open[i]) && t->windows[i].over_sleep == t->n_sleeps)
			t->windows[i].woken_by = t->woken_by;
	return 0;
}

/* The task falls asleep; after task_change(). */
static __always_inline void task_falls_asleep(struct tlob_task *t, __u32 slot, __u64 now)
{
	if (t->n_sleeps && t->over_sleep == t->n_sleeps)
		wakers_keep(slot);
	WRITE_ONCE(t->n_sleeps, t->n_sleeps + 1);
	t->slept_ns = now;
	t->woken_by.time_ns = 0;
}

/* For the task that is just leaving its CPU; of no use where the stack comes through the task. */
static __always_inline void stack_note(void *ctx, __u32 slot)
{
	struct tlob_stack *stack;

	if (stack_from_task)
		return;
	stack = bpf_map_lookup_elem(&stacks, &slot);
	if (stack)
		stack->size = bpf_get_stack(ctx, stack->ip, sizeof(stack->ip), 0);
}

static __always_inline void stack_take(struct tlob_stack *stack, const struct tlob_task *t)
{
	struct task_struct *task;

	if (!stack_from_task)
		return;
	stack->size = 0;
	task = bpf_task_from_pid(t->kernel_tid);
	if (!task)
		return;
	stack->size = bpf_get_task_stack(task, stack->ip, sizeof(stack->ip), 0);
	bpf_task_release(task);
}

/*
 * Tells where a sleeping task is blocked, in a record that goes before the one of its violation. A
 * stack that finds no room is not counted as lost: no violation is. Only timers find tasks asleep,
 * and they take turns on a CPU.
 *
 * Global, so that the verifier looks at it once.
 */
__noinline int stack_report(__u32 slot, __u64 id)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_stack *stack = bpf_map_lookup_elem(&stacks, &slot);
	struct tlob_stack_record *r;
	__u32 zero = 0, i, n;

	r = bpf_map_lookup_elem(&stack_records, &zero);
	if (!t || !stack || !r)
		return 0;
	stack_take(stack, t);
	if (stack->size <= 0)
		return 0;

	n = stack->size / sizeof(stack->ip[0]);
	if (n > TLOB_FRAMES_MAX)
		n = TLOB_FRAMES_MAX;
	r->type = TLOB_RECORD_STACK;
	r->id = id;
	for (i = 0; i < TLOB_FRAMES_MAX; i++)
		if (i < n)
			BPF_SNPRINTF(r->frame[i], sizeof(r->frame[i]), "%ps", stack->ip[i]);
	bpf_ringbuf_output(&records, r,
			   offsetof(struct tlob_stack_record, frame) + n * sizeof(r->frame[0]), 0);
	return 0;
}

#endif
