/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_FRAME_BPF_H
#define BPF_PROGRAM_FRAME_BPF_H

#include "bpf/program/window.bpf.h"

/*
 * The window of a function lasts no longer than the function's frame. What leaves a frame without
 * passing a way out of the function (an exception, longjmp(), the end of a thread) is seen by the
 * probes of unwind.bpf.h, if the function that does it has one. Else it is seen by the stack
 * pointer of the task, as long as that is above the frame.
 *
 * Only the task's own CPU looks, so that nobody else ends its windows: when it leaves the CPU (and
 * what is so known holds for as long as it does not run), and before a window of it is reported
 * while it runs.
 *
 * Where calls have been as deep again since, the stack pointer shows nothing. But the return
 * address that the frame began with lies there no more, unless nobody has written to that very
 * place.
 *
 * The window of a system call is bounded in the same way, by the number of the call that the task
 * is in. Its end is told, but from Linux 7.0 on not always: see calls.bpf.h.
 *
 * A stack pointer that lies on another stack says nothing, so the stack that a thread was made with
 * is looked for when its first window begins. What runs on another (a handler on a stack of its
 * own, a coroutine) is not reported until it is back, or at its stop.
 */

#define STACK_SPAN (8ULL << 20)

static __always_inline __u64 user_stack_pointer(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return PT_REGS_SP(regs);
}

/* Can the windows of the task be gone without anybody having told? */
static __always_inline bool task_has_bounds(const struct tlob_task *t)
{
	return READ_ONCE(t->lowest_frame) != TLOB_NEVER || READ_ONCE(t->calls);
}

#if defined(__TARGET_ARCH_x86)

/*
 * What a call by that number is among those of 64 bits, which go by their numbers here. The task is
 * in it, or just coming out of it.
 */
static __always_inline __u32 call_number(struct task_struct *task, __u32 number)
{
	if (!(task->thread_info.status & TS_COMPAT))
		return number;
	return number < TLOB_CALLS_MAX ? calls_of_32_bits[number] : TLOB_CALLS_MAX;
}

/* The system call that a task was in when it got these registers, plus one; 0: it was in none. */
static __always_inline __u32 call_of(struct task_struct *task, const struct pt_regs *regs)
{
	return call_number(task, (__u32)regs->orig_rax) + 1;
}

#else

/* Calls are not measured: see calls.bpf.h. */
static __always_inline __u32 call_of(struct task_struct *task, const struct pt_regs *regs)
{
	return 0;
}

#endif

struct stack_range {
	__u64 begin;
	__u64 end; /* 0: nobody knows */
};

#if defined(__TARGET_ARCH_x86) || defined(__TARGET_ARCH_arm64)

/* Where libc keeps the thread's data. */
static __always_inline __u64 thread_data(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread.fsbase;
#else
	return task->thread.uw.tp_value;
#endif
}

static long stack_from_mapping(struct task_struct *task, struct vm_area_struct *vma,
			       struct stack_range *ret)
{
	ret->begin = vma->vm_start;
	return 0;
}

/*
 * libc keeps a thread's data at the upper end of its stack. Stacks that somebody has mapped below
 * are mappings of their own. While the mappings change, they cannot be looked at: then it is
 * guessed how large the stack is. Returns whether that was not necessary.
 */
static __always_inline bool stack_of_libc(struct task_struct *task, struct stack_range *ret)
{
	__u64 data = thread_data(task);
	long r;

	ret->begin = data - STACK_SPAN;
	ret->end = data;
	r = bpf_find_vma(task, data, stack_from_mapping, ret, 0);
	if (r && r != -EBUSY)
		ret->end = 0;
	return r != -EBUSY;
}

#else

static __always_inline bool stack_of_libc(struct task_struct *task, struct stack_range *ret)
{
	ret->end = 0;
	return true;
}

#endif

/*
 * For the current task, which has that stack pointer. The first thread's stack is where the kernel
 * has put it, except in a process that was forked by another thread. What libc says counts there
 * only if the stack pointer lies in the same mapping: a first thread's data lie elsewhere. What is
 * not known, or was guessed, is looked for again at the next start. Global, so that the verifier
 * looks at it once.
 */
__noinline int stack_learn(__u32 slot, __u64 stack_pointer)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	bool first = task->pid == task->tgid && !(task->flags & PF_FORKNOEXEC), known = true;
	struct stack_range stack = {};

	if (!t)
		return 0;
	stack.end = BPF_CORE_READ(task, mm, start_stack);
	stack.begin = stack.end - STACK_SPAN;
	if (!first && stack_pointer - stack.begin > STACK_SPAN) {
		known = stack_of_libc(task, &stack);
		if (stack_pointer < stack.begin || stack_pointer > stack.end)
			return 0;
	}
	/* A hook can come in between. */
	WRITE_ONCE(t->stack_end, 0);
	WRITE_ONCE(t->stack_begin, stack.begin);
	WRITE_ONCE(t->stack_end, stack.end);
	t->stack_is_known = known;
	return 0;
}

/* Does that lie on the stack that the current task was made with, and not on one for handlers? */
static __always_inline bool is_on_own_stack(const struct tlob_task *t, __u64 stack_pointer)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return stack_pointer >= t->stack_begin && stack_pointer <= READ_ONCE(t->stack_end) &&
	       stack_pointer - task->sas_ss_sp > task->sas_ss_size;
}

#if defined(__TARGET_ARCH_x86)

/*
 * For the current task, at the function's first instruction: what its return address is. Read to
 * the stack: of memory of a map, a hardened kernel would first look up whose it is, under a lock.
 */
static __always_inline void frame_note(struct tlob_window *w, __u32 stop)
{
	__u64 address = 0;

	/* A return probe puts something else there. */
	if (w->frame && stop != TLOB_STOP_RETURN_PROBE &&
	    bpf_probe_read_user(&address, sizeof(address), (void *)w->frame))
		address = 0;
	w->return_address = address;
}

/* The current task: has something else been written to where the return address was? */
static __always_inline bool frame_is_overwritten(const struct tlob_window *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 address;

	if (!w->return_address ||
	    bpf_probe_read_user(&address, sizeof(address), (void *)w->frame) ||
	    address == w->return_address)
		return false;
	/* Somebody else's return probe. */
	return address != BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

#else

static __always_inline void frame_note(struct tlob_window *w, __u32 stop)
{
	w->return_address = 0;
}

static __always_inline bool frame_is_overwritten(const struct tlob_window *w)
{
	return false;
}

#endif

/* Bits; none: it is there. */
#define FRAME_LEFT	1U
#define FRAME_ELSEWHERE 2U /* the task is on another stack, or seems to be: that is not known */

/*
 * What has become of the frame of a window of the current task, when its stack pointer is that.
 * own: it is on the stack that it was made with. Global, so that the verifier looks at it once.
 */
__noinline __u32 frame_look(__u32 slot, __u32 place, __u64 stack_pointer, __u32 own)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	const struct tlob_window *w;

	if (!t)
		return 0;
	w = window_at(t, place);
	if ((own && stack_pointer > w->frame && w->frame >= t->stack_begin) ||
	    frame_is_overwritten(w))
		return FRAME_LEFT;
	return stack_pointer > w->frame ? FRAME_ELSEWHERE : 0;
}

/*
 * Looks at each window of the current task that has a frame, when its stack pointer is that, or is
 * a system call. Returns which have lost their frame or their call, as a bit mask. Global, so that
 * the verifier looks at it once.
 */
__noinline int frames_check(__u32 slot, __u64 stack_pointer)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 call = call_of(task, (const struct pt_regs *)bpf_task_pt_regs(task));
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	__u32 elsewhere = 0, left = 0, i;
	__u64 lowest = TLOB_NEVER;
	bool own;

	if (!t)
		return 0;
	own = is_on_own_stack(t, stack_pointer);
	/* In a loop with a call, Linux 6.1 takes all numbers for precise, and prunes nothing. */
#pragma unroll
	for (i = 0; i < TLOB_WINDOWS_MAX; i++) {
		const struct tlob_window *w = &t->windows[i];
		__u32 look;

		if (!READ_ONCE(t->open[i]))
			continue;
		if (w->call && w->call != call)
			left |= 1U << i;
		if (!w->frame)
			continue;
		look = frame_look(slot, i, stack_pointer, own);
		left |= (look & FRAME_LEFT) << i;
		elsewhere |= (look & FRAME_ELSEWHERE) / FRAME_ELSEWHERE << i;
		if (!(look & FRAME_LEFT) && w->frame < lowest)
			lowest = w->frame;
	}
	/* What was not looked at meanwhile is looked at now. */
	if (READ_ONCE(t->elsewhere) & ~elsewhere)
		WRITE_ONCE(t->next_ns, 0);
	WRITE_ONCE(t->elsewhere, elsewhere);
	WRITE_ONCE(t->lowest_frame, lowest);
	return left;
}

/* Ends windows of the current task, given as a bit mask, as abandoned. Global, as above. */
__noinline int windows_abandon(__u32 slot, __u32 mask)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct snapshot at = {};
	__u32 i;

	if (!t)
		return 0;
	task_ending(t, &at);
	for (i = 0; i < TLOB_WINDOWS_MAX; i++)
		if (mask & 1U << i)
			window_abandon(slot, i, &at);
	task_ended(t);
	return 0;
}

/* For the current task: ends the windows whose frames it has left. Global, as above. */
__noinline int frames_leave(__u32 slot, __u64 stack_pointer)
{
	__u32 left = frames_check(slot, stack_pointer);

	if (left)
		windows_abandon(slot, left);
	return 0;
}

/* The same, for the current task that is in that slot, if there can be any. */
static __always_inline void task_check_frames(struct task_struct *current, struct tlob_task *t,
					      __u32 slot)
{
	/* In the middle of a stop, it looks itself. */
	if (!task_has_bounds(t) || READ_ONCE(t->ending))
		return;
	frames_leave(slot, user_stack_pointer(current));
}

#endif
