/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_OPENING_BPF_H
#define BPF_PROGRAM_OPENING_BPF_H

#include "bpf/program/deadline.bpf.h"
#include "bpf/program/site.bpf.h"

/* A window opens: the totals of the task at its start are noted, and when its budgets run out. */

/* Where a function that begins with that stack pointer has its frame. */
static __always_inline __u64 frame_of(const struct tlob_binding *b, __u64 stack_pointer)
{
	if (!b->has_frame)
		return 0;
	/* Its probe is hit when the frame has just gone. */
	return b->stop == TLOB_STOP_RETURN_PROBE ? stack_pointer + RETURN_ADDRESS_SIZE
						 : stack_pointer;
}

/* Which of its windows are system calls. */
static __always_inline void calls_note(struct tlob_task *t, __u32 place, __u32 call)
{
	__u32 bit = 1U << (place & 7);

	if (call)
		WRITE_ONCE(t->calls, t->calls | bit);
	else if (READ_ONCE(t->calls))
		WRITE_ONCE(t->calls, t->calls & ~bit);
}

/*
 * Its binding was removed while it was opened: the daemon has ended it as well, or has not seen it
 * and will not look again.
 */
static __always_inline void window_withdraw(struct tlob_task *t, __u32 place, __u32 binding)
{
	struct tlob_books *stats = bpf_map_lookup_elem(&statistics, &binding);

	if (__sync_lock_test_and_set(&window_at(t, place)->claim, TLOB_CLAIM_CLOSED) ==
	    TLOB_CLAIM_CLOSED)
		return;
	WRITE_ONCE(*open_at(t, place), 0);
	if (stats)
		count(stats->ended[TLOB_END_REMOVED]);
}

/* The hit is that of the start, if there was one. start: the moment of it; NULL: now. */
static __always_inline void window_open(struct tlob_task *t, __u32 place, __u32 binding,
					const struct tlob_binding *b, __u64 generation,
					const struct hit *hit, const struct snapshot *start)
{
	struct tlob_window *w = window_at(t, place);
	struct next next = { TLOB_NEVER, { TLOB_NEVER, TLOB_NEVER, TLOB_NEVER } };
	struct snapshot at;

	if (!task_has_windows(t))
		holders_forget(t);
	w->generation = generation;
	w->binding = binding;
	w->frame = frame_of(b, hit->stack_pointer);
	WRITE_ONCE(t->owner, b->owner);
	frame_note(w, b->stop);
	if (READ_ONCE(t->elsewhere))
		WRITE_ONCE(t->elsewhere, t->elsewhere & ~(1U << (place & 7)));
	w->call = hit->call;
	calls_note(t, place, hit->call);
	if (start)
		at = *start;
	else
		task_snapshot(t, &at);
	w->base_ns[TLOB_RUNNING] = at.total_ns[TLOB_RUNNING];
	w->base_ns[TLOB_WAITING] = at.total_ns[TLOB_WAITING];
	w->base_ns[TLOB_SLEEPING] = at.total_ns[TLOB_SLEEPING];
	w->passed_ns[TLOB_RUNNING] = w->passed_ns[TLOB_WAITING] = w->passed_ns[TLOB_SLEEPING] = 0;
	w->over_sleep = 0;
	w->base_stolen_ns = task_stolen(t, NULL, true, 0);
	w->base_probes_ns = READ_ONCE(t->probes_ns);
	w->holder_ns[0] = t->holder_ns[0];
	w->holder_ns[1] = t->holder_ns[1];
	w->holder_ns[2] = t->holder_ns[2];
	w->holder_ns[3] = t->holder_ns[3];
	w->start_ns = at.now;
	ordered(&t->sequence);
	WRITE_ONCE(w->claim, TLOB_CLAIM_OPEN(at.now));
	ordered(&t->sequence);
	WRITE_ONCE(*open_at(t, place), generation);

	/* A full barrier: see the top of deadline.bpf.h. */
	add_fully(&t->n_opens, 1);
	if (READ_ONCE(b->generation) != generation) {
		window_withdraw(t, place, binding);
		return;
	}
	next_add(&next, w, b);
	if (next_lower(t, &next))
		WRITE_ONCE(t->timer_binding, binding);
	if (w->frame && w->frame < READ_ONCE(t->lowest_frame))
		WRITE_ONCE(t->lowest_frame, w->frame);
}

#endif
