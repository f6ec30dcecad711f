/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_GO_BPF_H
#define BPF_PROGRAM_GO_BPF_H

#include "bpf/program/site.bpf.h"
#include "bpf/program/window.bpf.h"

/*
 * Windows in programs of Go: of a goroutine, as long as it stays on its thread. There, what the
 * thread does is what the goroutine does. Two of the places where they stop are in the runtime,
 * where the thread has just taken another goroutine, that of the scheduler: from then on nothing is
 * known of the call. So an open window is always one of the goroutine that runs.
 *
 * Stacks of goroutines move when they grow. How far something lies below their upper end stays the
 * same, and takes the place of the stack pointer.
 */

#if defined(__TARGET_ARCH_x86)

/* The register that holds it wherever functions of Go begin and end. */
static __always_inline __u64 goroutine_of(const struct pt_regs *ctx)
{
	return ctx->r14;
}

#else

static __always_inline __u64 goroutine_of(const struct pt_regs *ctx)
{
	return 0;
}

#endif

/* What a goroutine begins with, in each version of Go: its stack. */
struct goroutine_stack {
	__u64 begin;
	__u64 end;
};

/* 0: there is no goroutine, or this is not its stack. */
static __always_inline __u64 goroutine_depth(const struct hit *hit)
{
	struct goroutine_stack stack = {};

	if (!hit->goroutine || bpf_probe_read_user(&stack, sizeof(stack), (void *)hit->goroutine) ||
	    hit->stack_pointer <= stack.begin || hit->stack_pointer >= stack.end)
		return 0;
	return stack.end - hit->stack_pointer;
}

/*
 * Is this one of the scheduler? Its thread says so: it is where the code of Go in assembler looks
 * for it.
 */
static __always_inline bool is_of_scheduler(__u64 goroutine)
{
	__u64 thread = 0, scheduler = 0;

	return !bpf_probe_read_user(&thread, sizeof(thread), (void *)(goroutine + 48)) && thread &&
	       !bpf_probe_read_user(&scheduler, sizeof(scheduler), (void *)thread) &&
	       scheduler == goroutine;
}

enum go_stop {
	GO_INNER,    /* a way out of a call inside of the window's */
	GO_RETURNED, /* that of the window */
	GO_LEFT,     /* the call, or the thread, has been left before, and nobody has seen how */
	GO_SWITCHED, /* the goroutine is leaving the thread */
};

/* What a stop means for an open window. Global, so that the verifier looks at it once. */
__noinline int go_stop_of(struct hit *hit, __u32 place)
{
	struct tlob_task *t;
	struct tlob_window *w;
	__u32 slot;
	__u64 depth;

	if (!hit)
		return GO_INNER;
	slot = hit->slot;
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (!t)
		return GO_INNER;
	w = window_at(t, place);
	if (hit->goroutine != w->goroutine)
		return is_of_scheduler(hit->goroutine) ? GO_SWITCHED : GO_LEFT;
	depth = goroutine_depth(hit);
	if (depth > w->depth)
		return GO_INNER;
	return depth == w->depth ? GO_RETURNED : GO_LEFT;
}

/* Notes whose window will be opened there. Returns whether that is known. Global, as above. */
__noinline int go_window_begin(struct hit *hit, __u32 place)
{
	struct tlob_task *t;
	struct tlob_window *w;
	__u32 slot;

	if (!hit)
		return 0;
	slot = hit->slot;
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (!t)
		return 0;
	w = window_at(t, place);
	w->goroutine = hit->goroutine;
	w->depth = goroutine_depth(hit);
	return w->depth != 0;
}

/* Returns whether the window has ended. */
static __always_inline int go_window_stop(struct hit *hit, __u32 place, const struct snapshot *at)
{
	switch (go_stop_of(hit, place)) {
	case GO_RETURNED:
		return window_end(hit->slot, place, at, TLOB_END_STOP);
	case GO_LEFT:
		return window_abandon(hit->slot, place, at);
	case GO_SWITCHED:
		/* Until now, all is known of it. */
		window_report(hit->slot, place, at);
		return window_switch(hit->slot, place, at);
	default:
		return 0;
	}
}

#endif
