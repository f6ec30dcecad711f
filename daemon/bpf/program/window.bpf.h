/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_WINDOW_BPF_H
#define BPF_PROGRAM_WINDOW_BPF_H

#include "bpf/program/holder.bpf.h"
#include "bpf/program/limit.bpf.h"

/*
 * Windows: opened and ended by the task that they belong to, judged by whoever looks, and reported
 * once. The books are kept here.
 */

/* What is known of a window at one moment. */
struct verdict {
	__u64 elapsed_ns;
	__u64 spent_ns[TLOB_N_STATES];
	__u64 passed_ns; /* when the first budget was broken */
	__u64 claim;	 /* of the window: for whom the verdict is */
	__u64 id;	 /* of the violation, TLOB_ID_SUPPRESSED: it is not reported */
	__u32 budget;
	__u32 exceeded;
	bool has_room; /* for its record: limits_leave_room() was asked */
};

/*
 * passed_ns: when that was, if it was noted; else the task was in that state all the time since, or
 * no hook has seen it leave the state.
 */
static __always_inline void judge_one(struct verdict *v, const struct tlob_binding *b,
				      enum tlob_budget budget, __u64 value, __u64 passed_ns,
				      __u64 now)
{
	if (value <= b->budget_ns[budget])
		return;
	if (!passed_ns)
		passed_ns = now - (value - b->budget_ns[budget]);
	if (!v->exceeded || passed_ns < v->passed_ns) {
		v->budget = budget;
		v->passed_ns = passed_ns;
	}
	v->exceeded |= 1 << budget;
}

static __always_inline void judge_state(struct verdict *v, const struct tlob_binding *b,
					const struct tlob_window *w, const struct snapshot *at,
					enum tlob_state state)
{
	v->spent_ns[state] = at->total_ns[state] - w->base_ns[state];
	judge_one(v, b, TLOB_BUDGET_RUNNING + state, v->spent_ns[state], w->passed_ns[state],
		  at->now);
}

/* Only one that is over can be too short, and that is known no sooner. */
static __always_inline void judge_minimum(struct verdict *v, const struct tlob_binding *b,
					  __u32 end)
{
	if (end != TLOB_END_STOP || b->budget_ns[TLOB_BUDGET_MINIMUM] == TLOB_NEVER ||
	    v->elapsed_ns >= b->budget_ns[TLOB_BUDGET_MINIMUM])
		return;
	if (!v->exceeded)
		v->budget = TLOB_BUDGET_MINIMUM;
	v->exceeded |= 1 << TLOB_BUDGET_MINIMUM;
}

/*
 * Compares the window in that place with its budgets. The one that was broken first is the one
 * named. end: how it ends now, TLOB_N_ENDS: it goes on. Returns whether any was broken. Global, so
 * that the verifier looks at it once, and whoever calls it has the more stack left.
 */
__noinline int window_judge(__u32 slot, __u32 place, const struct snapshot *at, struct verdict *v,
			    __u32 end)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_binding *b;
	struct tlob_window *w;
	__u32 binding;

	if (!t || !at || !v)
		return 0;
	w = window_at(t, place);
	binding = w->binding;
	b = bpf_map_lookup_elem(&bindings, &binding);
	if (!b)
		return 0;

	v->elapsed_ns = at->now - w->start_ns;
	v->exceeded = 0;
	v->budget = TLOB_BUDGET_TOTAL;
	v->passed_ns = at->now;
	judge_one(v, b, TLOB_BUDGET_TOTAL, v->elapsed_ns, 0, at->now);
	judge_state(v, b, w, at, TLOB_RUNNING);
	judge_state(v, b, w, at, TLOB_WAITING);
	judge_state(v, b, w, at, TLOB_SLEEPING);
	/* Nobody knows where it was, but the sum of all windows is to be right. */
	if (t->task == TLOB_TASK_OF_KEY)
		v->spent_ns[TLOB_SLEEPING] = v->elapsed_ns;
	judge_minimum(v, b, end);
	return v->exceeded != 0;
}

/*
 * Did the budget run out in the last sleep of the task, in which it is, or from which it has been
 * woken since?
 */
static __always_inline bool ran_out_asleep(const struct tlob_task *t, const struct verdict *v,
					   __u32 state)
{
	return t->n_sleeps && v->passed_ns >= t->slept_ns &&
	       (state == TLOB_SLEEPING || v->passed_ns <= t->woken_by.time_ns);
}

static __always_inline void waker_tell(struct tlob_peer *to, const struct tlob_task *t,
				       const struct tlob_window *w)
{
	to->time_ns = 0;
	if (w->over_sleep)
		*to = w->over_sleep == t->n_sleeps ? t->woken_by : w->woken_by;
}

/* How much of the time that the window ran was stolen. */
static __always_inline __u64 window_stolen(const struct tlob_task *t, const struct tlob_window *w,
					   struct task_struct *task, __u64 running_ns)
{
	__u64 stolen, of_cpu = 0;

	if (bpf_core_field_exists(task->thread_info.cpu))
		of_cpu = steal_of_cpu(BPF_CORE_READ(task, thread_info.cpu));
	stolen = task_stolen(t, task, false, of_cpu) - w->base_stolen_ns;
	/* The two are not read at the same moment. */
	return stolen < running_ns ? stolen : running_ns;
}

/* What is known of the task of a window, at that moment. It need not be the current one. */
static __always_inline void record_tell_task(struct tlob_record *r, const struct tlob_task *t,
					     __u32 slot, __u32 place, __u32 state)
{
	const struct tlob_window *w = window_at(t, place);
	struct task_struct *task = (struct task_struct *)t->task;

	r->stolen_ns = window_stolen(t, w, task, r->spent_ns[TLOB_RUNNING]);
	r->probes_ns =
		minimum(READ_ONCE(t->probes_ns) - w->base_probes_ns, r->spent_ns[TLOB_RUNNING]);
	r->state = state;
	r->cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	BPF_CORE_READ_INTO(&r->comm, task, comm);
	waker_tell(&r->woken_by, t, w);
	holder_tell(&r->preempted_by, t, slot, place, r->spent_ns[TLOB_WAITING], state, r->time_ns);
}

/* The same of one that has a key: who began it. */
static __always_inline void record_tell_keyed(struct tlob_record *r, const struct tlob_task *t)
{
	r->stolen_ns = r->probes_ns = 0;
	r->state = TLOB_N_STATES;
	r->cgroup_id = t->keyed.cgroup_id;
	__builtin_memcpy(r->comm, t->keyed.comm, sizeof(r->comm));
	r->woken_by.time_ns = r->preempted_by.time_ns = 0;
}

/*
 * A record of the window in that place, with everything but type, id and end; NULL if there is no
 * room.
 */
static __always_inline struct tlob_record *record_reserve(const struct tlob_task *t, __u32 slot,
							  __u32 place, const struct verdict *v,
							  const struct snapshot *at, __u32 state)
{
	const struct tlob_window *w = window_at(t, place);
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
	r->late_ns = at->now - v->passed_ns;
	r->budget = v->budget;
	r->exceeded = v->exceeded;
	r->tid = t->tid;
	r->pid = t->pid;
	if (t->task == TLOB_TASK_OF_KEY)
		record_tell_keyed(r, t);
	else
		record_tell_task(r, t, slot, place, state);
	return r;
}

/*
 * The task in that slot leaves a state, and a budget of that state is used up in one of its
 * windows: when that was is known now, and later no longer. Global, so that the verifier looks at
 * it once.
 */
__noinline int windows_passed(__u32 slot, __u32 state, __u64 now)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	__u32 i;

	if (!t || state >= TLOB_N_STATES)
		return 0;
	for (i = 0; i < TLOB_WINDOWS_MAX; i++) {
		struct tlob_window *w = &t->windows[i];
		struct tlob_binding *b;
		__u32 binding = w->binding;
		__u64 spent, budget;

		if (!READ_ONCE(t->open[i]) || w->passed_ns[state])
			continue;
		b = bpf_map_lookup_elem(&bindings, &binding);
		if (!b)
			continue;
		spent = t->total_ns[state] - w->base_ns[state];
		budget = b->budget_ns[TLOB_BUDGET_RUNNING + state];
		if (spent > budget)
			WRITE_ONCE(w->passed_ns[state], now - (spent - budget));
	}
	return 0;
}

/* What users lose is no matter of the machine. */
static __always_inline void count_lost(struct tlob_books *stats, __u32 binding)
{
	struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &binding);

	count(stats->lost);
	if (!b || !b->owner)
		count(n_lost);
}

/*
 * The number of a window whose violation is reported now, TLOB_ID_SUPPRESSED if it is not. Global,
 * as above.
 */
__noinline __u64 window_number(__u32 binding, __u64 now)
{
	struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &binding);

	if (!b || !limits_admit(b, now))
		return TLOB_ID_SUPPRESSED;
	return __sync_fetch_and_add(&next_window_id, 1);
}

/* A violation without a record: only counted, as held back or as lost. Global, as above. */
__noinline int window_unreported(__u32 slot, __u32 place, const struct verdict *v)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_books *stats;
	struct tlob_window *w;
	__u32 binding;

	if (!t || !v)
		return 0;
	w = window_at(t, place);
	binding = w->binding;
	stats = bpf_map_lookup_elem(&statistics, &binding);
	if (!stats ||
	    __sync_val_compare_and_swap(&w->claim, v->claim,
					TLOB_CLAIM_VIOLATED(v->id, v->budget)) != v->claim)
		return 0;
	count(stats->violations);
	if (v->id == TLOB_ID_SUPPRESSED)
		count(stats->suppressed);
	else
		count_lost(stats, binding);
	return 0;
}

/*
 * Reports the violation of the open window in that place: whoever swaps the claim of the verdict
 * has found it. The record is reserved before that, so that it comes before the one of the window's
 * completion.
 *
 * Global, as above.
 */
__noinline int window_violate(__u32 slot, __u32 place, const struct verdict *v,
			      const struct snapshot *at, __u32 state)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_books *stats;
	struct tlob_record *r;
	struct tlob_window *w;
	__u32 binding;

	if (!t || !v || !at)
		return 0;
	w = window_at(t, place);
	binding = w->binding;
	stats = bpf_map_lookup_elem(&statistics, &binding);
	if (!stats)
		return 0;

	if (ran_out_asleep(t, v, state))
		w->over_sleep = t->over_sleep = at->n_sleeps;
	if (v->id == TLOB_ID_SUPPRESSED ||
	    (!v->has_room && !limits_leave_room(bpf_map_lookup_elem(&bindings, &binding))))
		return window_unreported(slot, place, v);
	r = record_reserve(t, slot, place, v, at, state);
	if (!r)
		return window_unreported(slot, place, v);

	r->type = TLOB_RECORD_VIOLATION;
	r->id = v->id;
	r->end = TLOB_END_STOP;
	if (__sync_val_compare_and_swap(&w->claim, v->claim,
					TLOB_CLAIM_VIOLATED(v->id, v->budget)) == v->claim) {
		count(stats->violations);
		bpf_ringbuf_submit(r, 0);
	} else
		bpf_ringbuf_discard(r, 0);
	return 0;
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

/* 1, or 0 for 0. Without a branch: the verifier would follow both ways of each. */
static __always_inline __u64 is_any(__u64 n)
{
	__u64 negative = -n;

	asm volatile("" : "+r"(negative));
	return (n | negative) >> 63;
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
	for (shift = 32; shift; shift /= 2) {
		__u32 step = is_any(rest >> shift) * shift;

		log2 += step;
		rest >>= step;
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

/* The books of a window that has ended, and for how long it was open. Global, as above. */
__noinline int window_count(__u32 binding, const struct verdict *v, __u32 end)
{
	struct tlob_books *stats = bpf_map_lookup_elem(&statistics, &binding);

	if (!stats || !v)
		return 0;
	count_spent(&stats->spent_ns[TLOB_RUNNING], v->spent_ns[TLOB_RUNNING]);
	count_spent(&stats->spent_ns[TLOB_WAITING], v->spent_ns[TLOB_WAITING]);
	count_spent(&stats->spent_ns[TLOB_SLEEPING], v->spent_ns[TLOB_SLEEPING]);
	count_maximum(binding, v->elapsed_ns);
	count_length(binding, v->elapsed_ns);

	if (end != TLOB_END_STOP)
		count(stats->ended[end & (TLOB_ENDS_SIZE - 1)]);
	else if (TLOB_CLAIM_IS_VIOLATED(v->claim))
		count(stats->violated);
	else
		count(stats->in_budget);
	return 0;
}

/*
 * Reports the end of a window in violation, as the claim of the verdict has it. Global, as above.
 */
__noinline int window_complete(__u32 slot, __u32 place, const struct verdict *v,
			       const struct snapshot *at, __u32 end)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_books *stats;
	struct tlob_record *r;
	__u32 binding;

	if (!t || !v || !at)
		return 0;
	binding = window_at(t, place)->binding;
	stats = bpf_map_lookup_elem(&statistics, &binding);
	if (!stats)
		return 0;

	/* Its violation had no record either. */
	if (TLOB_CLAIM_ID(v->claim) == TLOB_ID_SUPPRESSED)
		return 0;
	r = limits_leave_room(bpf_map_lookup_elem(&bindings, &binding))
		    ? record_reserve(t, slot, place, v, at, TLOB_RUNNING)
		    : NULL;
	if (!r) {
		count_lost(stats, binding);
		return 0;
	}
	r->budget = TLOB_CLAIM_BUDGET(v->claim);
	r->exceeded |= 1U << r->budget;
	r->type = TLOB_RECORD_COMPLETION;
	r->id = TLOB_CLAIM_ID(v->claim);
	r->end = end;
	bpf_ringbuf_submit(r, 0);
	return 0;
}

/*
 * Reports that a window of the current task has broken a budget, if it has, and nobody has found
 * that yet. end: as above.
 */
static __always_inline void window_report_over(__u32 slot, __u32 place, struct tlob_window *w,
					       struct verdict *v, const struct snapshot *at,
					       __u32 end)
{
	v->claim = TLOB_CLAIM_OPEN(w->start_ns);
	if (!window_judge(slot, place, at, v, end) || READ_ONCE(w->claim) != v->claim)
		return;
	v->id = window_number(w->binding, at->now);
	window_violate(slot, place, v, at, TLOB_RUNNING);
}

/*
 * Ends a window of the current task, if it is open: books, and the reports that it owes. Returns
 * whether it did: the daemon may end the same window, because its binding is being removed. A timer
 * may be reporting its violation. The claim decides both.
 *
 * Global, as above.
 */
__noinline int window_end(__u32 slot, __u32 place, const struct snapshot *at, __u32 end)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct verdict v = {};
	struct tlob_window *w;

	if (!t || !at || place >= TLOB_WINDOWS_MAX || !READ_ONCE(*open_at(t, place)))
		return 0;
	/* Nobody else changes anything in it but the claim. */
	w = window_at(t, place);
	window_report_over(slot, place, w, &v, at, end);

	v.claim = __sync_lock_test_and_set(&w->claim, TLOB_CLAIM_CLOSED);
	if (v.claim == TLOB_CLAIM_CLOSED)
		return 0;
	WRITE_ONCE(*open_at(t, place), 0);
	window_count(w->binding, &v, end);
	if (TLOB_CLAIM_IS_VIOLATED(v.claim))
		window_complete(slot, place, &v, at, end);
	return 1;
}

/*
 * The same for a window of which it is not known when it ended: it is in no total, and has broken
 * no budget that was not reported before.
 */
static __always_inline int window_lose(__u32 slot, __u32 place, const struct snapshot *at,
				       __u32 end)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_books *stats;
	struct verdict v = {};
	struct tlob_window *w;
	__u32 binding;

	if (!t || !at || place >= TLOB_WINDOWS_MAX || !READ_ONCE(*open_at(t, place)))
		return 0;
	w = window_at(t, place);
	binding = w->binding;
	stats = bpf_map_lookup_elem(&statistics, &binding);
	if (!stats)
		return 0;

	v.claim = __sync_lock_test_and_set(&w->claim, TLOB_CLAIM_CLOSED);
	if (v.claim == TLOB_CLAIM_CLOSED)
		return 0;
	WRITE_ONCE(*open_at(t, place), 0);
	count(stats->ended[end & (TLOB_ENDS_SIZE - 1)]);
	if (TLOB_CLAIM_IS_VIOLATED(v.claim)) {
		window_judge(slot, place, at, &v, end);
		window_complete(slot, place, &v, at, end);
	}
	return 1;
}

/* The window's frame has gone. Global, as above. */
__noinline int window_abandon(__u32 slot, __u32 place, const struct snapshot *at)
{
	return window_lose(slot, place, at, TLOB_END_ABANDONED);
}

/* Its goroutine leaves the task. Global, as above. */
__noinline int window_switch(__u32 slot, __u32 place, const struct snapshot *at)
{
	return window_lose(slot, place, at, TLOB_END_SWITCHED);
}

/* Reports that a window of the current task has run over, as its end would. Global, as above. */
__noinline int window_report(__u32 slot, __u32 place, const struct snapshot *at)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct verdict v = {};

	if (!t || !at || place >= TLOB_WINDOWS_MAX || !READ_ONCE(*open_at(t, place)))
		return 0;
	window_report_over(slot, place, window_at(t, place), &v, at, TLOB_N_ENDS);
	return 0;
}

#define NO_PLACE TLOB_WINDOWS_MAX

/*
 * Where the open window of that generation is, else NO_PLACE; *ret_free: a free place, else
 * NO_PLACE.
 */
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

/* For windows of users there is half of the places, so that theirs never take all. */
static __always_inline __u32 place_for_owned(const struct tlob_task *t)
{
	__u32 i;

#pragma unroll
	for (i = TLOB_WINDOWS_MAX / 2; i < TLOB_WINDOWS_MAX; i++)
		if (!READ_ONCE(t->open[i]))
			return i;
	return NO_PLACE;
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
