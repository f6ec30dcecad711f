/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef WINDOW_BPF_H
#define WINDOW_BPF_H

#include "cause.bpf.h"

/*
 * Windows: opened and ended by the task that they belong to, judged by whoever looks, and reported
 * once. The books are kept here.
 */

/* What is known of a window at one moment. */
struct verdict {
	__u64 elapsed_ns;
	__u64 spent_ns[TLOB_N_STATES];
	__u64 late_ns;
	__u32 budget;
	__u32 exceeded;
};

static __always_inline void judge_one(struct verdict *v, const struct tlob_binding *b,
				      enum tlob_budget budget, __u64 value)
{
	if (value <= b->budget_ns[budget])
		return;
	if (!v->exceeded) {
		v->budget = budget;
		v->late_ns = value - b->budget_ns[budget];
	}
	v->exceeded |= 1 << budget;
}

/* Compares a window with its budgets. The first one broken, in their order, is the one named. */
static __always_inline void judge(struct verdict *v, const struct tlob_binding *b,
				  const struct tlob_window *w, const struct snapshot *at)
{
	v->elapsed_ns = at->now - w->start_ns;
	v->spent_ns[TLOB_RUNNING] = at->total_ns[TLOB_RUNNING] - w->base_ns[TLOB_RUNNING];
	v->spent_ns[TLOB_WAITING] = at->total_ns[TLOB_WAITING] - w->base_ns[TLOB_WAITING];
	v->spent_ns[TLOB_SLEEPING] = at->total_ns[TLOB_SLEEPING] - w->base_ns[TLOB_SLEEPING];
	v->exceeded = 0;
	v->budget = TLOB_BUDGET_TOTAL;
	v->late_ns = 0;
	judge_one(v, b, TLOB_BUDGET_TOTAL, v->elapsed_ns);
	judge_one(v, b, TLOB_BUDGET_RUNNING, v->spent_ns[TLOB_RUNNING]);
	judge_one(v, b, TLOB_BUDGET_WAITING, v->spent_ns[TLOB_WAITING]);
	judge_one(v, b, TLOB_BUDGET_SLEEPING, v->spent_ns[TLOB_SLEEPING]);
}

/* What happened to the task before its window began has nothing to do with it. */
static __always_inline void peer_tell(struct tlob_peer *to, const struct tlob_peer *peer,
				      const struct tlob_window *w)
{
	*to = *peer;
	if (to->time_ns < w->start_ns)
		to->time_ns = 0;
}

/*
 * A record with everything but type, id and end; NULL if there is no room. The task need not be the
 * current one.
 */
static __always_inline struct tlob_record *record_reserve(const struct tlob_task *t,
							  const struct tlob_window *w,
							  const struct verdict *v,
							  const struct snapshot *at, __u32 state)
{
	struct task_struct *task = (struct task_struct *)t->task;
	struct tlob_record *r;

	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r)
		return NULL;

	r->binding = w->binding;
	r->binding_generation = w->generation;
	r->time_ns = at->now;
	r->elapsed_ns = v->elapsed_ns;
	r->spent_ns[TLOB_RUNNING] = v->spent_ns[TLOB_RUNNING];
	r->spent_ns[TLOB_WAITING] = v->spent_ns[TLOB_WAITING];
	r->spent_ns[TLOB_SLEEPING] = v->spent_ns[TLOB_SLEEPING];
	r->late_ns = v->late_ns;
	r->budget = v->budget;
	r->exceeded = v->exceeded;
	r->state = state;
	r->tid = t->tid;
	r->pid = t->pid;
	r->cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	BPF_CORE_READ_INTO(&r->comm, task, comm);
	peer_tell(&r->woken_by, &t->woken_by, w);
	peer_tell(&r->preempted_by, &t->preempted_by, w);
	peer_tell(&r->ran_before, &t->ran_before, w);
	return r;
}

static __always_inline void count_lost(struct tlob_statistics *stats)
{
	count(stats->lost);
	count(n_lost);
}

/*
 * Reports the violation of an open window, of which w is a copy and claim the place: whoever swaps
 * the claim has found it. The record is reserved before that, so that it comes before the one of the
 * window's completion.
 */
static __always_inline void window_violate(__u32 slot, struct tlob_statistics *stats,
					   const struct tlob_task *t, const struct tlob_window *w,
					   __u64 *claim, const struct verdict *v,
					   const struct snapshot *at, __u32 state)
{
	__u64 open = TLOB_CLAIM_OPEN(w->start_ns);
	__u64 id = __sync_fetch_and_add(&next_window_id, 1);
	__u64 violated = TLOB_CLAIM_VIOLATED(id, v->budget);
	struct tlob_record *r;
	__u64 seen;

	if (state == TLOB_SLEEPING)
		stack_report(slot, id);

	r = record_reserve(t, w, v, at, state);
	seen = __sync_val_compare_and_swap(claim, open, violated);
	if (seen == open) {
		count(stats->violations);
		if (!r)
			count_lost(stats);
	}
	if (r) {
		r->type = TLOB_RECORD_VIOLATION;
		r->id = id;
		r->end = TLOB_END_STOP;
		if (seen == open)
			bpf_ringbuf_submit(r, 0);
		else
			bpf_ringbuf_discard(r, 0);
	}
}

static __always_inline void count_maximum(__u32 binding, __u64 elapsed)
{
	__u64 *max = bpf_map_lookup_elem(&maxima, &binding);
	__u64 old, seen;
	int i;

	if (!max)
		return;

	old = READ_ONCE(*max);
	for (i = 0; i < 4 && elapsed > old; i++) {
		seen = __sync_val_compare_and_swap(max, old, elapsed);
		if (seen == old)
			return;
		old = seen;
	}
}

static __always_inline void count_spent(__u64 *total, __u64 spent)
{
	if (spent)
		__sync_fetch_and_add(total, spent);
}

/* See TLOB_BUCKETS. */
static __always_inline __u32 bucket_of(__u64 ns)
{
	__u32 log2 = 0, bucket;
	__u64 rest = ns;
	int shift;

	if (ns < 1U << TLOB_SUB_BUCKET_BITS)
		return ns;
#pragma unroll
	for (shift = 32; shift; shift /= 2)
		if (rest >> shift) {
			log2 += shift;
			rest >>= shift;
		}
	bucket = ((log2 - TLOB_SUB_BUCKET_BITS + 1) << TLOB_SUB_BUCKET_BITS) +
		 ((ns >> (log2 - TLOB_SUB_BUCKET_BITS)) & ((1U << TLOB_SUB_BUCKET_BITS) - 1));
	return bucket;
}

static __always_inline void count_length(__u32 binding, __u64 elapsed)
{
	__u32 group = binding / TLOB_HISTOGRAMS_GROUP, place = binding % TLOB_HISTOGRAMS_GROUP;
	void *histograms_of_group = bpf_map_lookup_elem(&histograms, &group);
	struct tlob_histogram *histogram;
	__u32 bucket = bucket_of(elapsed);

	if (!histograms_of_group)
		return;
	histogram = bpf_map_lookup_elem(histograms_of_group, &place);
	if (!histogram)
		return;
	if (bucket >= TLOB_BUCKETS)
		bucket = TLOB_BUCKETS - 1;
	count(histogram->counts[bucket]);
}

static __always_inline void count_end(struct tlob_statistics *stats, const struct tlob_window *w,
				      const struct verdict *v, __u32 end, bool violated)
{
	count_spent(&stats->spent_ns[TLOB_RUNNING], v->spent_ns[TLOB_RUNNING]);
	count_spent(&stats->spent_ns[TLOB_WAITING], v->spent_ns[TLOB_WAITING]);
	count_spent(&stats->spent_ns[TLOB_SLEEPING], v->spent_ns[TLOB_SLEEPING]);
	count_maximum(w->binding, v->elapsed_ns);
	count_length(w->binding, v->elapsed_ns);

	if (end != TLOB_END_STOP)
		count(stats->ended[end & (TLOB_ENDS_SIZE - 1)]);
	else if (violated)
		count(stats->violated);
	else
		count(stats->in_budget);
}

static __always_inline void window_complete(struct tlob_statistics *stats,
					    const struct tlob_task *t, const struct tlob_window *w,
					    __u64 claim, struct verdict *v,
					    const struct snapshot *at, __u32 end)
{
	struct tlob_record *r;

	v->budget = TLOB_CLAIM_BUDGET(claim);
	r = record_reserve(t, w, v, at, TLOB_RUNNING);
	if (!r) {
		count_lost(stats);
		return;
	}
	r->type = TLOB_RECORD_COMPLETION;
	r->id = TLOB_CLAIM_ID(claim);
	r->end = end;
	bpf_ringbuf_submit(r, 0);
}

/*
 * Ends a window of the current task, if it is open: books, and the reports that it owes. Returns
 * whether it did: the daemon may end the same window, because its binding is being removed. A timer
 * may be reporting its violation. The claim decides both.
 *
 * Global, so that the verifier looks at it once and not for every way that leads here.
 */
__noinline int window_end(__u32 slot, __u32 place, const struct snapshot *at, __u32 end)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_statistics *stats;
	struct tlob_binding *b;
	struct tlob_window *w;
	struct verdict v;
	__u32 binding;
	__u64 claim;

	if (!t || !at || place >= TLOB_WINDOWS_MAX)
		return 0;
	if (!READ_ONCE(t->open[place]))
		return 0;
	/* Nobody else changes anything in it but the claim. */
	w = &t->windows[place];
	binding = w->binding;
	b = bpf_map_lookup_elem(&bindings, &binding);
	stats = bpf_map_lookup_elem(&statistics, &binding);
	if (!b || !stats)
		return 0;

	judge(&v, b, w, at);
	if (v.exceeded && READ_ONCE(w->claim) == TLOB_CLAIM_OPEN(w->start_ns))
		window_violate(slot, stats, t, w, &w->claim, &v, at, TLOB_RUNNING);

	claim = __sync_lock_test_and_set(&w->claim, TLOB_CLAIM_CLOSED);
	if (claim == TLOB_CLAIM_CLOSED)
		return 0;
	WRITE_ONCE(t->open[place], 0);

	count_end(stats, w, &v, end, TLOB_CLAIM_IS_VIOLATED(claim));
	if (TLOB_CLAIM_IS_VIOLATED(claim))
		window_complete(stats, t, w, claim, &v, at, end);
	return 1;
}

#define NO_PLACE TLOB_WINDOWS_MAX

/* Where the open window of that generation is, else NO_PLACE; *ret_free: a free place, else NO_PLACE. */
static __always_inline __u32 window_find(const struct tlob_task *t, __u64 generation,
					 __u32 *ret_free)
{
	__u32 place = NO_PLACE, unused = NO_PLACE;
	int i;

#pragma unroll
	for (i = TLOB_WINDOWS_MAX - 1; i >= 0; i--) {
		__u64 g = READ_ONCE(t->open[i]);

		if (g == generation)
			place = i;
		else if (!g)
			unused = i;
	}
	*ret_free = unused;
	return place;
}

/* Is an open window of the task in violation? */
static __always_inline bool task_is_over(const struct tlob_task *t)
{
	bool any = false;
	int i;

#pragma unroll
	for (i = 0; i < TLOB_WINDOWS_MAX; i++)
		any |= TLOB_CLAIM_IS_VIOLATED(READ_ONCE(t->windows[i].claim));
	return any;
}

static __always_inline bool task_has_windows(const struct tlob_task *t)
{
	__u64 any = 0;
	int i;

#pragma unroll
	for (i = 0; i < TLOB_WINDOWS_MAX; i++)
		any |= READ_ONCE(t->open[i]);
	return any;
}

#endif
