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

/* What bpf_loop() goes over: to look at so many frames one by one takes the verifier long. */
struct frames {
	const struct tlob_stack *stack;
	bool interrupt, softirq, packet;
};

static long frame_judge(__u32 i, void *context)
{
	struct frames *frames = context;
	__u64 ip;

	/* Beyond that it is another's, of before. */
	if (i >= TLOB_STACK_MAX || (__s64)((i + 1) * sizeof(ip)) > frames->stack->size)
		return 1;
	ip = frames->stack->ip[i];
	if (IS_IN(ip, interrupts)) {
		frames->interrupt = true;
		return 1;
	}
	if (IS_IN(ip, softirqs))
		frames->softirq = true;
	else if (IS_IN(ip, network))
		frames->packet = true;
	return 0;
}

/*
 * Does this code do what is an interrupt's business, not the current task's? Its stack tells. A
 * task also does what interrupts have left to do, whosever it is; only a packet that is received so
 * has most likely been sent by the task itself, to this machine.
 */
static __always_inline bool in_interrupt(void *ctx, struct tlob_stack *stack)
{
	struct frames frames = { .stack = stack };

	stack->size = bpf_get_stack(ctx, stack->ip, sizeof(stack->ip), 0);
	bpf_loop(TLOB_STACK_MAX, frame_judge, &frames, 0);
	/* A thread of the kernel has sent nothing. */
	return frames.interrupt ||
	       (frames.softirq && !(frames.packet && bpf_get_current_task_btf()->mm));
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

/* What bpf_loop() goes over, as above. */
struct frame_names {
	struct tlob_stack_record *record;
	const struct tlob_stack *stack;
	__u32 n;
};

static long frame_name(__u32 i, void *context)
{
	struct frame_names *names = context;

	if (i >= TLOB_FRAMES_MAX || i >= names->n)
		return 1;
	BPF_SNPRINTF(names->record->frame[i], sizeof(names->record->frame[i]), "%ps",
		     names->stack->ip[i]);
	return 0;
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
	struct frame_names names = { .stack = stack };
	struct tlob_stack_record *r;
	__u32 zero = 0, n;

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
	names.record = r;
	names.n = n;
	bpf_loop(TLOB_FRAMES_MAX, frame_name, &names, 0);
	bpf_ringbuf_output(&records, r,
			   offsetof(struct tlob_stack_record, frame) + n * sizeof(r->frame[0]), 0);
	return 0;
}

#endif
