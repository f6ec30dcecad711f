/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_PROBE_BPF_H
#define BPF_PROGRAM_PROBE_BPF_H

#include "bpf/program/deadline.bpf.h"
#include "bpf/program/go.bpf.h"
#include "bpf/program/keyed.bpf.h"
#include "bpf/program/lane.bpf.h"
#include "bpf/program/opening.bpf.h"
#include "bpf/program/process.bpf.h"
#include "bpf/program/return.bpf.h"
#include "bpf/program/site.bpf.h"
#include "bpf/program/uprobe.bpf.h"

/*
 * Start and stop: what is done when a probe is hit, for each binding that the hit is for. A start
 * opens a window and notes the task's totals, a stop ends it and takes the difference.
 *
 * These programs can be preempted at any instruction (only migration is off), and the hooks then
 * run for the very task that is in the middle of one. So statistics are atomic, and totals are read
 * under a sequence count.
 */

/*
 * While one daemon takes over from another, each place has the probes of both, or two sites, and a
 * call is told twice.
 */
static __always_inline bool is_handed_over(const struct tlob_binding *b)
{
	return READ_ONCE(b->start_cookie_before);
}

/* Is a start that finds a window open one inside of it? */
static __always_inline bool start_is_nested(struct hit *hit, const struct tlob_binding *b,
					    const struct tlob_window *w, __u32 place)
{
	if (b->stop == TLOB_STOP_GO)
		return go_stop_of(hit, place) == GO_INNER;
	/* A task is in one system call at a time. */
	if (hit->call)
		return false;
	return !b->has_frame ||
	       (frame_of(b, hit->stack_pointer) < w->frame && !frame_is_overwritten(w));
}

static __always_inline void binding_start(struct hit *hit, __u32 binding, struct tlob_binding *b,
					  struct tlob_books *stats)
{
	__u32 place = NO_PLACE, unused = NO_PLACE;
	__u64 generation = READ_ONCE(b->generation);
	struct snapshot at;
	struct tlob_task *t;
	__u32 slot;

	if (hit->slot == NO_SLOT) {
		if (task_is_ours())
			return;
		/* Users share half of the slots: the rest is for what the machine measures. */
		if (!b->owner || !slots_are_short())
			hit->slot = task_new();
	}
	slot = hit->slot;
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (t)
		place = window_find(t, generation, &unused);
	if (t && place < TLOB_WINDOWS_MAX) {
		const struct tlob_window *w = window_at(t, place);

		if (is_handed_over(b) &&
		    (!b->has_frame || frame_of(b, hit->stack_pointer) == w->frame))
			return;
		if (start_is_nested(hit, b, w, place)) {
			count(stats->nested);
			return;
		}
		/* What bounds the open window is gone, and nobody has seen it go. */
		task_ending(t, &at);
		window_abandon(slot, place, &at);
		task_ended(t);
		unused = place;
	} else if (t && b->owner)
		unused = place_for_owned(t);
	unused = unlearned(hit->scratch, unused);

	count(stats->starts);
	if (!t || unused >= TLOB_WINDOWS_MAX)
		count(stats->over_limit);
	else if (b->stop == TLOB_STOP_GO && !go_window_begin(hit, unused))
		count(stats->ended[TLOB_END_SWITCHED]);
	else
		window_open(t, unused, binding, b, generation, hit, NULL);
}

static __always_inline void binding_unmatched(struct hit *hit, struct tlob_binding *b,
					      struct tlob_books *stats)
{
	__u32 slot = hit->slot, unused;
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);

	if (!t && task_is_ours())
		return;
	/* Where goroutines leave their threads, they mostly leave no window. */
	if (is_handed_over(b) || b->stop == TLOB_STOP_GO)
		return;
	if (!t || window_find(t, READ_ONCE(b->generation), &unused) == NO_PLACE)
		count(stats->unmatched);
}

/* A hit is for that binding: is it its turn, and not that of what is done in keyed_hit()? */
static __always_inline bool binding_has_turn(struct hit *hit, __u32 binding,
					     const struct tlob_binding *b)
{
	if (!hit->n_keyed && !hit->keyed_done)
		hit->binding = binding;
	/* Nor is it counted that it came by: what such a task does is no matter of the user. */
	if (b->owner && !task_is_owned_by(b->owner))
		return false;
	if (b->is_keyed) {
		keyed_note(hit, binding);
		return false;
	}
	return !hit->keyed_done; /* else it was its turn before */
}

static __always_inline int binding_meet(struct hit *hit, __u32 binding, enum side side)
{
	struct tlob_books *stats = bpf_map_lookup_elem(&statistics, &binding);
	struct tlob_binding *b;

	if (!stats)
		return 0;
	b = binding_of_hit(hit, binding, side);
	if (!b)
		return 0;
	if (!binding_has_turn(hit, binding, b))
		return 1;
	if (side == SIDE_START)
		binding_start(hit, binding, b, stats);
	else
		binding_unmatched(hit, b, stats);
	return 1;
}

__noinline int start_hit(struct hit *hit, __u32 binding)
{
	return hit ? binding_meet(hit, binding, SIDE_START) : 0;
}

/* One that may have found no window. */
__noinline int stop_hit(struct hit *hit, __u32 binding)
{
	return hit ? binding_meet(hit, binding, SIDE_STOP) : 0;
}

/* As many as a site has room for, of one unit and of none. */
#define KEYED_PASSES_MAX 36

static __always_inline bool keyed_pass(struct hit *hit, void *sites, enum side side)
{
	struct tlob_site *site;

	if (!keyed_hit(hit, side))
		return false;
	site = site_find(sites, hit->cookie);
	if (site)
		site_hit(site, hit, side);
	return true;
}

static long keyed_stop_pass(__u32 i, void *context)
{
	return keyed_pass(context, &stop_sites, SIDE_STOP) ? 0 : 1;
}

/*
 * After the bindings of the site have been gone over: what those are owed that have keys. Starts
 * have no room on the stack for bpf_loop().
 */
static __always_inline void keyed_starts(struct hit *hit)
{
	__u32 i;

	for (i = 0; i < KEYED_PASSES_MAX && keyed_pass(hit, &start_sites, SIDE_START); i++)
		;
}

static __always_inline void keyed_stops(struct hit *hit)
{
	if (hit->n_keyed)
		bpf_loop(KEYED_PASSES_MAX, keyed_stop_pass, hit, 0);
}

static __always_inline struct tlob_remembered *remembered_at(struct tlob_task *t, __u64 cookie)
{
	return &t->remembered[cookie & (TLOB_REMEMBERED_MAX - 1)];
}

/* A start with several bindings, if it was for one of them the last time. Returns for how many. */
static __always_inline __u32 remembered_hit(struct tlob_task *t, struct hit *hit)
{
	const struct tlob_remembered *r = remembered_at(t, hit->cookie);

	if (r->cookie != hit->cookie || r->cgroup_id != hit->cgroup_id ||
	    r->changes != READ_ONCE(n_changes))
		return 0;
	return start_hit(hit, r->binding);
}

/*
 * One that was for just one; at: what is remembered with it, as it was before. Not if the daemon
 * was changing something, or the task was moved meanwhile.
 */
static __always_inline void remember(const struct hit *hit, const struct tlob_remembered *at)
{
	__u32 slot = hit->slot;
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_remembered *r;

	if (!t || hit->n_keyed || at->changes & 1 || at->changes != READ_ONCE(n_changes) ||
	    at->cgroup_id != bpf_get_current_cgroup_id())
		return;
	r = remembered_at(t, hit->cookie);
	r->cookie = hit->cookie;
	r->cgroup_id = at->cgroup_id;
	r->changes = at->changes;
	r->binding = hit->binding;
}

/* site_hit() of a start; t: the current task, if it has a slot. */
static __always_inline __u32 site_start(struct tlob_site *site, struct tlob_task *t,
					struct hit *hit)
{
	struct tlob_remembered at;
	__u32 n;

	if (READ_ONCE(site->n_bindings) < 2)
		return site_hit(site, hit, SIDE_START);
	at.cgroup_id = hit->cgroup_id;
	at.changes = READ_ONCE(n_changes);
	n = t ? remembered_hit(t, hit) : 0;
	if (n)
		return n;
	ordered(&site->n_outside);
	n = site_hit(site, hit, SIDE_START);
	if (n == 1)
		remember(hit, &at);
	return n;
}

/* What is done once for each thread that has a window with a frame. */
static __always_inline void task_has_frame(__u32 slot, __u64 stack_pointer)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	__u32 epoch = READ_ONCE(unwinding_epoch);

	if (!t || t->lowest_frame == TLOB_NEVER)
		return;
	if (!t->stack_is_known)
		stack_learn(slot, stack_pointer);
	if (epoch && t->unwinding_epoch != epoch)
		process_unwinds(slot);
}

/*
 * What a hit takes from the current task, if that has a slot. Before a window begins, or after one
 * has ended: the hit is not inside of that.
 */
static __always_inline void probes_add(struct tlob_task *t, const struct tlob_site *site)
{
	if (t)
		WRITE_ONCE(t->probes_ns, READ_ONCE(t->probes_ns) + READ_ONCE(site->price_ns));
}

/* Returns the slot of the task if a window may have been opened, else NO_SLOT. */
static __always_inline __u32 on_start(struct pt_regs *ctx)
{
	struct tlob_site *site;
	struct tlob_task *t;
	struct hit hit;

	hit_init(&hit);
	hit.cookie = hit_cookie(ctx, SIDE_START);
	hit.stack_pointer = PT_REGS_SP(ctx);
	hit.goroutine = goroutine_of(ctx);
	site = site_find(&start_sites, hit.cookie);

	t = task_current(bpf_get_current_task_btf(), &hit.slot);
	if (site) {
		__u32 n;

		site_count_hit(SIDE_START, (__u32)hit.cookie);
		lane_adopt_first(hit.slot);
		probes_add(t, site);
		n = site_start(site, t, &hit);
		keyed_starts(&hit);
		if (READ_ONCE(n_pages) && TLOB_LANE_WORD_IS(PT_REGS_PARM1(ctx)))
			lane_start(hit.slot, PT_REGS_PARM1(ctx), hit.cookie, n);
	}
	task_has_frame(hit.slot, hit.stack_pointer);
	return hit.slot;
}

/* Where the start itself may arm the timer (Linux 7.0). */
static __always_inline void on_start_arm(struct pt_regs *ctx)
{
	__u32 slot = on_start(ctx);
	struct tlob_task *t;

	slots_arm_left();
	if (slot == NO_SLOT)
		return;
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (t)
		timer_arm_now(t, slot);
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

	if (slot == NO_SLOT && !READ_ONCE(n_unarmed))
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
		if (b && is_stop_of(b, cookie) && READ_ONCE(b->generation) == generation)
			mask |= 1U << i;
	}
	return mask;
}

/* As it is when the function has come from the stop to its return. */
static __always_inline __u64 stack_pointer_at_return(const struct tlob_binding *b,
						     const struct tlob_task *t,
						     const struct hit *hit)
{
	__u32 depth = READ_ONCE(b->stop_depth);

	if (depth & TLOB_DEPTH_OF_FRAME_POINTER)
		return t->frame_pointer + (depth & ~TLOB_DEPTH_OF_FRAME_POINTER);
	return hit->stack_pointer + depth;
}

/* Global, as window_end(). */
__noinline int window_stop(struct hit *hit, __u32 place, const struct snapshot *at)
{
	struct tlob_books *stats;
	struct tlob_window *w;
	struct tlob_binding *b;
	struct tlob_task *t;
	__u64 stack_pointer;
	__u32 slot, binding;
	int ended;

	if (!hit || !at || place >= TLOB_WINDOWS_MAX)
		return 0;
	slot = hit->slot;
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (!t)
		return 0;
	w = window_at(t, place);
	binding = w->binding;
	b = bpf_map_lookup_elem(&bindings, &binding);
	if (!b)
		return 0;

	stack_pointer = stack_pointer_at_return(b, t, hit);
	if (b->stop == TLOB_STOP_GO)
		ended = go_window_stop(hit, place, at);
	/* A way out of an inner call: its frame lies below that of the window. */
	else if (b->stop != TLOB_STOP_PLACE && stack_pointer < w->frame)
		return 0;
	/* Of an outer one, for which there was no room: the window's frame is gone. */
	else if (w->frame && stack_pointer > w->frame) {
		stats = bpf_map_lookup_elem(&statistics, &binding);
		if (stats)
			count(stats->unmatched);
		ended = window_abandon(slot, place, at);
	} else
		ended = window_end(slot, place, at, TLOB_END_STOP);
	if (ended && !task_has_windows(t)) {
		task_forget_deadlines(t);
		WRITE_ONCE(t->lowest_frame, TLOB_NEVER);
	}
	return 0;
}

/*
 * A stop ends the windows of the task that it is the stop of, also when the task has left its unit
 * meanwhile. Only if there may be bindings here without a window are they looked for.
 */
static __always_inline void site_stop(struct hit *hit, struct tlob_task *t,
				      const struct snapshot *at)
{
	struct tlob_site *site = site_find(&stop_sites, hit->cookie);
	__u32 i, mask;

	if (!site)
		return;
	site_count_hit(SIDE_STOP, (__u32)hit->cookie);

	mask = windows_at(hit->slot, hit->cookie);
	if ((__u32)__builtin_popcount(mask) < READ_ONCE(site->n_bindings) &&
	    !(mask && site_is_apart(site)))
		site_hit(site, hit, SIDE_STOP);
	for (i = 0; i < TLOB_WINDOWS_MAX && mask; i++, mask >>= 1)
		if (mask & 1)
			window_stop(hit, i, at);
	probes_add(t, site);
}

/* The same of the current task; at: has room for the moment. */
static __always_inline void hit_stop(struct hit *hit, struct snapshot *at)
{
	struct tlob_task *t = task_current(bpf_get_current_task_btf(), &hit->slot);

	if (t && t->lane)
		lane_adopt(hit->slot);
	/* First, so that the window ends when what it measures does. */
	if (t)
		task_ending(t, at);
	site_stop(hit, t, at);
	if (t)
		task_ended(t);
}

static __always_inline int on_stop(struct pt_regs *ctx)
{
	struct snapshot at = {};
	struct tlob_task *t;
	struct hit hit;

	hit_init(&hit);
	hit.stack_pointer = PT_REGS_SP(ctx);
	hit.goroutine = goroutine_of(ctx);
	t = task_current(bpf_get_current_task_btf(), &hit.slot);
	if (t && t->lane)
		lane_adopt(hit.slot);
	/* First, so that the window ends when the code that it measures does. */
	if (t) {
		task_ending(t, &at);
		t->frame_pointer = PT_REGS_FP(ctx);
	}

	hit.cookie = hit_cookie(ctx, SIDE_STOP);
	site_stop(&hit, t, &at);
	if (t)
		task_ended(t);
	keyed_stops(&hit);
	return 0;
}

/*
 * The same for the two ways to attach a uprobe (uprobe_multi links, from Linux 6.6 on, want
 * programs of another attach type), and for who may arm timers.
 */
SEC("uprobe")
int start_perf(struct pt_regs *ctx)
{
	keep_own_stack(ctx, &no_perf_programs);
	on_start(ctx);
	return 0;
}

SEC("uprobe")
int start_multi(struct pt_regs *ctx)
{
	keep_own_stack(ctx, &no_multi_programs);
	on_start(ctx);
	return 0;
}

SEC("uprobe")
int start_perf_bridge(struct pt_regs *ctx)
{
	keep_own_stack(ctx, &no_perf_programs);
	on_start_bridge(ctx);
	return 0;
}

SEC("uprobe")
int start_multi_bridge(struct pt_regs *ctx)
{
	keep_own_stack(ctx, &no_multi_programs);
	on_start_bridge(ctx);
	return 0;
}

SEC("uprobe")
int start_multi_arm(struct pt_regs *ctx)
{
	keep_own_stack(ctx, &no_multi_programs);
	on_start_arm(ctx);
	return 0;
}

/* The same on an event that is a probe: see events.bpf.h. */
SEC("uprobe")
int start_perf_arm(struct pt_regs *ctx)
{
	keep_own_stack(ctx, &no_perf_programs);
	on_start_arm(ctx);
	return 0;
}

SEC("uprobe")
int stop_perf(struct pt_regs *ctx)
{
	keep_own_stack(ctx, &no_perf_programs);
	return on_stop(ctx);
}

SEC("uprobe")
int stop_multi(struct pt_regs *ctx)
{
	keep_own_stack(ctx, &no_multi_programs);
	on_stop(ctx);
	return_at_once(ctx);
	return 0;
}

#endif
