/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_UNWIND_BPF_H
#define BPF_PROGRAM_UNWIND_BPF_H

#include "bpf/program/frame.bpf.h"
#include "bpf/program/uprobe.bpf.h"

/*
 * Frames that are left by unwinding, at the moment when that happens: the functions that do it have
 * probes. longjmp() is told where it goes to. An exception comes to rest where __cxa_begin_catch()
 * is called, and passes by where _Unwind_Resume() is: by a function that lies further out on the
 * stack than all that have been left.
 *
 * Later, the stack pointer would tell only until the next calls have reached as deep again.
 */

/* In the cookie of a probe, as UnwindKind in bpf/unwind.h. */
#define UNWIND_LANDING 0
#define UNWIND_LONGJMP 1

#if defined(__TARGET_ARCH_x86)

#define JMPBUF_SP	48   /* where the stack pointer is in a jmp_buf of glibc and of musl */
#define POINTER_GUARD	0x30 /* in the thread control block of glibc */
#define POINTER_ROTATED 17

/* Where a longjmp() goes to; 0: not known. glibc encrypts it, musl does not. */
static __always_inline __u64 longjmp_target(struct pt_regs *ctx, struct task_struct *current)
{
	__u64 pointer = PT_REGS_SP(ctx), saved, guard, plain;

	if (bpf_probe_read_user(&saved, sizeof(saved), (void *)(PT_REGS_PARM1(ctx) + JMPBUF_SP)))
		return 0;
	if (saved - pointer <= STACK_SPAN)
		return saved;
	if (bpf_probe_read_user(&guard, sizeof(guard),
				(void *)(current->thread.fsbase + POINTER_GUARD)))
		return 0;
	plain = (saved >> POINTER_ROTATED | saved << (64 - POINTER_ROTATED)) ^ guard;
	return plain - pointer <= STACK_SPAN ? plain : 0;
}

#else

static __always_inline __u64 longjmp_target(struct pt_regs *ctx, struct task_struct *current)
{
	return 0;
}

#endif

/*
 * Until now the frames were there: what has run over is reported. Global, so that the verifier
 * looks once.
 */
__noinline int windows_unwind(__u32 slot, __u32 mask)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct snapshot at = {};
	struct verdict v = {};
	__u32 i;

	if (!t)
		return 0;
	task_ending(t, &at);
	for (i = 0; i < TLOB_WINDOWS_MAX; i++) {
		if (!(mask & 1U << i))
			continue;
		window_report_over(slot, i, window_at(t, i), &v, &at, TLOB_END_ABANDONED);
		window_abandon(slot, i, &at);
	}
	task_ended(t);
	return 0;
}

static __always_inline int on_unwind(struct pt_regs *ctx)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct tlob_task *t;
	__u64 pointer;
	__u32 slot, left;

	if (!task_may_have_slot(current))
		return 0;
	t = task_current(current, &slot);
	if (!t || READ_ONCE(t->lowest_frame) == TLOB_NEVER)
		return 0;
	if (bpf_get_attach_cookie(ctx) == UNWIND_LONGJMP)
		pointer = longjmp_target(ctx, current);
	else
		/*
		 * What its caller has called lay where its own return address lies now. Where that
		 * is in a register, both begin at one place, and who calls it from inside of that
		 * has put something there.
		 */
		pointer = PT_REGS_SP(ctx) + (RETURN_ADDRESS_SIZE ?: 1);
	if (pointer <= READ_ONCE(t->lowest_frame))
		return 0;
	left = frames_check(slot, pointer);
	if (left)
		windows_unwind(slot, left);
	return 0;
}

SEC("uprobe")
int unwind_perf(struct pt_regs *ctx)
{
	keep_own_stack(ctx, &no_perf_programs);
	return on_unwind(ctx);
}

SEC("uprobe")
int unwind_multi(struct pt_regs *ctx)
{
	keep_own_stack(ctx, &no_multi_programs);
	return on_unwind(ctx);
}

#endif
