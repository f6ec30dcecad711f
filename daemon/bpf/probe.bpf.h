/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROBE_BPF_H
#define PROBE_BPF_H

#include "deadline.bpf.h"
#include "site.bpf.h"

/*
 * Start and stop: what is done when a probe is hit, for each binding that the hit is for. A start opens
 * a window and notes the task's totals, a stop ends it and takes the difference.
 *
 * These programs can be preempted at any instruction (only migration is off), and the hooks then run for
 * the very task that is in the middle of one. So statistics are atomic, and totals are read under a
 * sequence count.
 */

static __always_inline void window_open(struct tlob_task *t, __u32 place, __u32 binding,
					const struct tlob_binding *b, __u64 generation,
					__u64 stack_pointer)
{
	struct tlob_window *w = &t->windows[place];
	struct next next = { TLOB_NEVER, { TLOB_NEVER, TLOB_NEVER, TLOB_NEVER } };
	struct snapshot at;

	w->generation = generation;
	w->binding = binding;
	w->stack_pointer = stack_pointer;
	task_snapshot(t, &at);
	w->base_ns[TLOB_RUNNING] = at.total_ns[TLOB_RUNNING];
	w->base_ns[TLOB_WAITING] = at.total_ns[TLOB_WAITING];
	w->base_ns[TLOB_SLEEPING] = at.total_ns[TLOB_SLEEPING];
	w->start_ns = at.now;
	ordered();
	WRITE_ONCE(w->claim, TLOB_CLAIM_OPEN(at.now));
	ordered();
	WRITE_ONCE(t->open[place], generation);

	/* A full barrier: see the top of deadline.bpf.h. */
	__sync_fetch_and_add(&t->n_opens, 1);
	next_add(&next, w, b);
	next_lower(t, &next);
}

static __always_inline void binding_start(struct hit *hit, __u32 binding, struct tlob_binding *b,
					  struct tlob_statistics *stats)
{
	__u32 place = NO_PLACE, unused = NO_PLACE;
	__u64 generation = READ_ONCE(b->generation);
	struct snapshot at;
	struct tlob_task *t;
	__u32 slot;

	if (hit->slot == NO_SLOT)
		hit->slot = task_new();
	slot = hit->slot;
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (t)
		place = window_find(t, generation, &unused);
	if (t && place < TLOB_WINDOWS_MAX) {
		if (!b->stop_is_return || hit->stack_pointer < t->windows[place].stack_pointer) {
			count(stats->nested);
			return;
		}
		/* The frame of the open window is gone, and no return told. */
		task_ending(t, &at);
		window_end(slot, place, &at, TLOB_END_ABANDONED);
		task_ended(t);
		unused = place;
	}

	count(stats->starts);
	if (!t || unused >= TLOB_WINDOWS_MAX)
		count(stats->over_limit);
	else
		window_open(t, unused, binding, b, generation, hit->stack_pointer);
}

static __always_inline void binding_unmatched(struct hit *hit, struct tlob_binding *b,
					      struct tlob_statistics *stats)
{
	__u32 slot = hit->slot, unused;
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);

	if (!t || window_find(t, READ_ONCE(b->generation), &unused) == NO_PLACE)
		count(stats->unmatched);
}

/* A start of that binding, or a stop that may have found no window; if it is for that binding at all. */
__noinline int binding_hit(struct hit *hit, __u32 binding)
{
	struct tlob_statistics *stats = bpf_map_lookup_elem(&statistics, &binding);
	struct tlob_binding *b;

	if (!hit || !stats)
		return 0;
	b = binding_of_hit(hit, binding);
	if (!b)
		return 0;
	if (hit->side == SIDE_START)
		binding_start(hit, binding, b, stats);
	else
		binding_unmatched(hit, b, stats);
	return 0;
}

/*
 * From Linux 6.13 on, programs of this type have their stack in memory of the CPU, as if they could not
 * be preempted. Those on uprobes can: the program of another task then writes into the same stack
 * (seen on 7.3, where records of one task came out under the name of another). Programs with tail
 * calls are left out of that, so here is one, which the verifier takes out after it has seen it.
 */
static __always_inline void keep_own_stack(struct pt_regs *ctx)
{
	if (never)
		bpf_tail_call(ctx, &no_programs, 0);
}

/* Returns the slot of the task if a window may have been opened, else NO_SLOT. */
static __always_inline __u32 on_start(struct pt_regs *ctx)
{
	struct hit hit = {
		.cookie = bpf_get_attach_cookie(ctx),
		.stack_pointer = PT_REGS_SP(ctx),
		.level = LEVEL_UNKNOWN,
		.side = SIDE_START,
	};
	struct tlob_site *site = site_find(&start_sites, hit.cookie);

	keep_own_stack(ctx);
	task_current(bpf_get_current_task_btf(), &hit.slot);
	if (site)
		site_hit(site, &hit);
	return hit.slot;
}

/* Where the start itself may arm the timer (Linux 7.0). */
static __always_inline void on_start_arm(struct pt_regs *ctx)
{
	__u32 slot = on_start(ctx);
	struct tlob_task *t;

	if (slot == NO_SLOT)
		return;
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (t)
		timer_arm(t, slot, task_deadline(t), READ_ONCE(t->last_ns));
}

/* For bridge.bpf.c to be attached to. Global, so that it stays what it is. */
__noinline int deadline_bridge(__u32 slot)
{
	asm volatile("" : "+r"(slot));
	return slot;
}

/* Where a tracing program may arm the timer, and the start may not. */
static __always_inline void on_start_bridge(struct pt_regs *ctx)
{
	__u32 slot = on_start(ctx);
	struct tlob_task *t;

	if (slot == NO_SLOT)
		return;
	deadline_bridge(slot);
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (t && !timer_is_due(t, task_deadline(t)))
		count(n_bridge_failures);
}

/* The open windows of a task that end at a site, as a bit mask. Global, as window_end(). */
__noinline __u32 windows_at(__u32 slot, __u64 cookie)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	__u32 mask = 0, i;

	if (!t)
		return 0;
	for (i = 0; i < TLOB_WINDOWS_MAX; i++) {
		__u64 generation = READ_ONCE(t->open[i]);
		struct tlob_binding *b;
		__u32 binding;

		if (!generation)
			continue;
		binding = READ_ONCE(t->windows[i].binding);
		b = bpf_map_lookup_elem(&bindings, &binding);
		if (b && b->stop_cookie == cookie && READ_ONCE(b->generation) == generation)
			mask |= 1U << i;
	}
	return mask;
}

/* Global, as window_end(). */
__noinline int window_stop(struct hit *hit, __u32 place, const struct snapshot *at)
{
	struct tlob_statistics *stats;
	struct tlob_window *w;
	struct tlob_binding *b;
	struct tlob_task *t;
	__u32 slot, binding, end = TLOB_END_STOP;

	if (!hit || !at || place >= TLOB_WINDOWS_MAX)
		return 0;
	slot = hit->slot;
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (!t)
		return 0;
	w = &t->windows[place];
	binding = w->binding;
	b = bpf_map_lookup_elem(&bindings, &binding);
	if (!b)
		return 0;

	if (b->stop_is_return) {
		__u64 entry = hit->stack_pointer - RETURN_ADDRESS_SIZE;

		/* The return of an inner call: its frame lies below that of the window. */
		if (entry < w->stack_pointer)
			return 0;
		/* Of an outer one, for which there was no room: the window's frame is gone. */
		if (entry > w->stack_pointer) {
			stats = bpf_map_lookup_elem(&statistics, &binding);
			if (stats)
				count(stats->unmatched);
			end = TLOB_END_ABANDONED;
		}
	}

	if (window_end(slot, place, at, end) && !task_has_windows(t))
		task_forget_deadlines(t);
	return 0;
}

/*
 * A stop ends the windows of the task that it is the stop of, also when the task has left its unit
 * meanwhile. Only if there may be bindings here without a window are they looked for.
 */
static __always_inline void site_stop(struct hit *hit, const struct snapshot *at)
{
	struct tlob_site *site = site_find(&stop_sites, hit->cookie);
	__u32 i, mask;

	if (!site)
		return;

	mask = windows_at(hit->slot, hit->cookie);
	if ((__u32)__builtin_popcount(mask) < READ_ONCE(site->n_bindings) &&
	    !(mask && site_is_apart(site)))
		site_hit(site, hit);
	for (i = 0; i < TLOB_WINDOWS_MAX && mask; i++, mask >>= 1)
		if (mask & 1)
			window_stop(hit, i, at);
}

static __always_inline int on_stop(struct pt_regs *ctx)
{
	struct hit hit = {
		.stack_pointer = PT_REGS_SP(ctx),
		.level = LEVEL_UNKNOWN,
		.side = SIDE_STOP,
	};
	struct tlob_task *t = task_current(bpf_get_current_task_btf(), &hit.slot);
	struct snapshot at = {};

	keep_own_stack(ctx);
	/* First, so that the window ends when the code that it measures does. */
	if (t)
		task_ending(t, &at);

	hit.cookie = bpf_get_attach_cookie(ctx);
	site_stop(&hit, &at);
	if (t)
		task_ended(t);
	return 0;
}

/*
 * The same for the two ways to attach a uprobe (uprobe_multi links, from Linux 6.6 on, want programs of
 * another attach type), and for who may arm timers.
 */
SEC("uprobe")
int start_perf(struct pt_regs *ctx)
{
	on_start(ctx);
	return 0;
}

SEC("uprobe")
int start_multi(struct pt_regs *ctx)
{
	on_start(ctx);
	return 0;
}

SEC("uprobe")
int start_perf_bridge(struct pt_regs *ctx)
{
	on_start_bridge(ctx);
	return 0;
}

SEC("uprobe")
int start_multi_bridge(struct pt_regs *ctx)
{
	on_start_bridge(ctx);
	return 0;
}

SEC("uprobe")
int start_multi_arm(struct pt_regs *ctx)
{
	on_start_arm(ctx);
	return 0;
}

SEC("uprobe")
int stop_perf(struct pt_regs *ctx)
{
	return on_stop(ctx);
}

SEC("uprobe")
int stop_multi(struct pt_regs *ctx)
{
	return on_stop(ctx);
}

#endif
