/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_DEADLINE_BPF_H
#define BPF_PROGRAM_DEADLINE_BPF_H

#include "bpf/program/frame.bpf.h"
#include "bpf/program/hits.bpf.h"

/*
 * Deadlines: finding out that a budget has run out while the window is still open.
 *
 * Each task knows when the first of its budgets runs out, whatever their number (next_ns,
 * next_total_ns). Its timer is armed lazily: one that fires no later than that is left as it is,
 * and when it fires too early, it looks at the windows, corrects what the task knows, and is armed
 * for the rest. So a million short windows do not arm a million timers.
 *
 * What the task knows may be too early, never too late. A start lowers it, on the task's own CPU,
 * while a timer that corrects it may be running on another: the start counts itself (n_opens)
 * before it looks at what is there, and the timer looks at the count after it has written.
 */

/* Returns whether it was higher. */
static __always_inline bool lower(__u64 *value, __u64 to)
{
	__u64 old = READ_ONCE(*value);

	if (to >= old)
		return false;
	/* Someone else changes it too: now is early enough for everyone. */
	if (__sync_val_compare_and_swap(value, old, to) != old)
		WRITE_ONCE(*value, 0);
	return true;
}

/* When a budget is used up that began at base; never, if there is no such budget. */
static __always_inline __u64 runs_out(__u64 base, __u64 budget_ns)
{
	return budget_ns == TLOB_NEVER ? TLOB_NEVER : base + budget_ns;
}

struct next {
	__u64 ns;
	__u64 total_ns[TLOB_N_STATES];
};

static __always_inline void next_read(struct next *next, const struct tlob_task *t)
{
	next->ns = READ_ONCE(t->next_ns);
	next->total_ns[TLOB_RUNNING] = READ_ONCE(t->next_total_ns[TLOB_RUNNING]);
	next->total_ns[TLOB_WAITING] = READ_ONCE(t->next_total_ns[TLOB_WAITING]);
	next->total_ns[TLOB_SLEEPING] = READ_ONCE(t->next_total_ns[TLOB_SLEEPING]);
}

static __always_inline void next_add(struct next *next, const struct tlob_window *w,
				     const struct tlob_binding *b)
{
	next->ns = minimum(next->ns, runs_out(w->start_ns, b->budget_ns[TLOB_BUDGET_TOTAL]));
	next->total_ns[TLOB_RUNNING] =
		minimum(next->total_ns[TLOB_RUNNING],
			runs_out(w->base_ns[TLOB_RUNNING], b->budget_ns[TLOB_BUDGET_RUNNING]));
	next->total_ns[TLOB_WAITING] =
		minimum(next->total_ns[TLOB_WAITING],
			runs_out(w->base_ns[TLOB_WAITING], b->budget_ns[TLOB_BUDGET_WAITING]));
	next->total_ns[TLOB_SLEEPING] =
		minimum(next->total_ns[TLOB_SLEEPING],
			runs_out(w->base_ns[TLOB_SLEEPING], b->budget_ns[TLOB_BUDGET_SLEEPING]));
}

/* Returns whether any is the first to run out now. */
static __always_inline bool next_lower(struct tlob_task *t, const struct next *next)
{
	bool any = lower(&t->next_ns, next->ns);

	any |= lower(&t->next_total_ns[TLOB_RUNNING], next->total_ns[TLOB_RUNNING]);
	any |= lower(&t->next_total_ns[TLOB_WAITING], next->total_ns[TLOB_WAITING]);
	any |= lower(&t->next_total_ns[TLOB_SLEEPING], next->total_ns[TLOB_SLEEPING]);
	return any;
}

/* From what was read before to what is true now, unless a start has lowered it meanwhile. */
static __always_inline void next_correct(struct tlob_task *t, const struct next *from,
					 const struct next *to)
{
	__sync_val_compare_and_swap(&t->next_ns, from->ns, to->ns);
	__sync_val_compare_and_swap(&t->next_total_ns[TLOB_RUNNING], from->total_ns[TLOB_RUNNING],
				    to->total_ns[TLOB_RUNNING]);
	__sync_val_compare_and_swap(&t->next_total_ns[TLOB_WAITING], from->total_ns[TLOB_WAITING],
				    to->total_ns[TLOB_WAITING]);
	__sync_val_compare_and_swap(&t->next_total_ns[TLOB_SLEEPING], from->total_ns[TLOB_SLEEPING],
				    to->total_ns[TLOB_SLEEPING]);
}

/* When the first budget runs out, if the task stays in the state that it is in. */
static __always_inline __u64 task_deadline(const struct tlob_task *t)
{
	__u64 deadline = READ_ONCE(t->next_ns), limit, total;
	__u32 state = READ_ONCE(t->state);

	if (state >= TLOB_N_STATES)
		return deadline;

	limit = READ_ONCE(t->next_total_ns[state]);
	if (limit == TLOB_NEVER)
		return deadline;
	total = READ_ONCE(t->total_ns[state]);
	return minimum(deadline, READ_ONCE(t->last_ns) + (limit > total ? limit - total : 0));
}

/*
 * No timer fires sooner than that, and one that found nothing it could do waits longer each time:
 * whatever goes wrong, a timer never keeps a CPU busy.
 */
#define LEAST_NS       1000
#define AGAIN_NS       10000
#define AGAIN_DOUBLING 8 /* at most: 2.56 ms */

/* Is there a timer that fires no later? */
static __always_inline bool timer_is_due(const struct tlob_task *t, __u64 deadline)
{
	__u64 pending = READ_ONCE(t->timer_ns);

	return deadline == TLOB_NEVER || (pending && pending <= deadline);
}

/*
 * A slot that is no task's: no hook comes by it, so the next program arms its timer that may. Those
 * that have none, as the kernel had no memory for it, are looked at by one timer for all of them,
 * each few milliseconds, whoever's they are.
 */
#define SLOTS_LEFT_AT_ONCE 8
#define SWEEP_NS	   4000000
#define SWEEP_AT_ONCE	   256

/* Of a slot that is marked as queued. A lock that cannot be had in time is an error, too. */
static __always_inline void slot_queue(void *queue, __u32 *n, struct tlob_task *t, __u32 slot)
{
	__sync_fetch_and_add(n, 1);
	if (!bpf_map_push_elem(queue, &slot, 0))
		return;
	__sync_fetch_and_add(n, -1);
	WRITE_ONCE(t->queued, 0);
	count(n_timer_failures);
}

static __always_inline void sweep_arm(void)
{
	struct slot_timer *timer;
	__u32 key = 0;

	if (READ_ONCE(sweep_is_armed) || __sync_val_compare_and_swap(&sweep_is_armed, 0, 1) != 0)
		return;
	timer = bpf_map_lookup_elem(&sweep_timer, &key);
	if (!timer || bpf_timer_start(&timer->timer, SWEEP_NS, 0)) {
		WRITE_ONCE(sweep_is_armed, 0);
		count(n_timer_failures);
	}
}

/* A task's that has no timer. Global, as window_end(). */
__noinline int slot_await_sweep(__u32 slot)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);

	/* A full barrier: whoever has unmarked it sees what the task does now. */
	if (t && __sync_val_compare_and_swap(&t->queued, 0, 1) == 0)
		slot_queue(&untimed_slots, &n_untimed, t, slot);
	sweep_arm();
	return 0;
}

/* Of a slot that has a timer. */
static __always_inline void timer_set(struct tlob_task *t, __u32 slot, __u64 deadline, __u64 now)
{
	struct slot_timer *timer;
	__u64 distance = LEAST_NS;

	timer = bpf_map_lookup_elem(&timers, &slot);
	if (!timer)
		return;

	WRITE_ONCE(t->timer_ns, deadline);
	WRITE_ONCE(t->timer_cpu, bpf_get_smp_processor_id());
	/* A budget is broken when it is passed, not when it is reached. */
	if (deadline >= now + LEAST_NS)
		distance = deadline - now + 1;
	if (bpf_timer_start(&timer->timer, distance, 0)) {
		WRITE_ONCE(t->timer_ns, 0);
		count(n_timer_failures);
	}
}

/* Sees to it that the timer of the slot fires at deadline, or before. */
static __always_inline void timer_arm(struct tlob_task *t, __u32 slot, __u64 deadline, __u64 now)
{
	if (timer_is_due(t, deadline))
		return;
	if (slot < READ_ONCE(slots_timed))
		timer_set(t, slot, deadline, now);
	else
		slot_await_sweep(slot);
}

/*
 * The same for a task that goes on as it is. When it entered its state is no matter: that can be
 * long ago.
 */
static __always_inline void timer_arm_now(struct tlob_task *t, __u32 slot)
{
	__u64 deadline = task_deadline(t);

	if (!timer_is_due(t, deadline))
		timer_arm(t, slot, deadline, bpf_ktime_get_ns());
}

/* The next one; NULL: there is none. It stays marked. */
static __always_inline struct tlob_task *slot_dequeue(void *queue, __u32 *n, __u32 *slot)
{
	if (bpf_map_pop_elem(queue, slot))
		return NULL;
	__sync_fetch_and_add(n, -1);
	return bpf_map_lookup_elem(&tasks, slot);
}

/* A full barrier: whoever takes the slot from here on queues it again. */
static __always_inline void slot_unmark(struct tlob_task *t)
{
	__sync_lock_test_and_set(&t->queued, 0);
}

static __always_inline void slot_leave(struct tlob_task *t, __u32 slot)
{
	if (READ_ONCE(t->next_ns) == TLOB_NEVER ||
	    __sync_val_compare_and_swap(&t->queued, 0, 1) != 0)
		return;
	slot_queue(&unarmed_slots, &n_unarmed, t, slot);
}

static long slot_arm_left(__u32 i, void *context)
{
	__u32 slot = 0;
	struct tlob_task *t = slot_dequeue(&unarmed_slots, &n_unarmed, &slot);

	if (!t)
		return 1;
	if (slot >= READ_ONCE(slots_timed)) {
		slot_queue(&untimed_slots, &n_untimed, t, slot);
		sweep_arm();
		return 0;
	}
	slot_unmark(t);
	if (READ_ONCE(t->task) == TLOB_TASK_OF_KEY)
		timer_arm(t, slot, task_deadline(t), bpf_ktime_get_ns());
	return 0;
}

/* It must not take long, so a few at once. */
static __always_inline void slots_arm_left(void)
{
	if (READ_ONCE(n_unarmed))
		bpf_loop(SLOTS_LEFT_AT_ONCE, slot_arm_left, NULL, 0);
}

/*
 * The timer of a task that gets a CPU comes with it: only there can be seen whether frames or
 * system calls are left, when it fires while the task runs.
 */
static __always_inline void timer_fetch(struct tlob_task *t, __u32 slot, __u64 now)
{
	__u64 pending = READ_ONCE(t->timer_ns);

	if (!pending || t->timer_cpu == bpf_get_smp_processor_id() || !task_has_bounds(t))
		return;
	WRITE_ONCE(t->timer_ns, 0);
	timer_arm(t, slot, pending, now);
}

/*
 * In a hook on the task, after task_change(): ends the state of the task, and enters the next one.
 */
static __always_inline void task_enter(struct tlob_task *t, __u32 slot, __u32 next, __u64 now)
{
	__u32 state = t->state;

	task_account(t, next, now);
	if (state < TLOB_N_STATES && t->total_ns[state] > READ_ONCE(t->next_total_ns[state]))
		windows_passed(slot, state, now);
	timer_arm(t, slot, task_deadline(t), now);
}

/*
 * One window of a task: reports it if a budget of it has run out, else adds it to *next. Global, as
 * window_end().
 */
__noinline int window_check(__u32 slot, __u32 place, const struct snapshot *at, __u32 state,
			    struct next *next)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct verdict v = {};
	__u64 generation;
	struct tlob_binding *b;
	struct tlob_window *w;
	__u32 binding;

	if (!t || !at || !next || place >= TLOB_WINDOWS_MAX)
		return 0;
	/* On another stack, nobody knows whether its frame is there. */
	if (READ_ONCE(t->elsewhere) >> place & 1)
		return 0;

	/*
	 * If another takes its place from here on, the claim is not that one's, and it has counted
	 * itself.
	 */
	w = window_at(t, place);
	v.claim = READ_ONCE(w->claim);
	ordered(&t->sequence);
	generation = READ_ONCE(*open_at(t, place));
	binding = READ_ONCE(w->binding);
	if (!generation || v.claim == TLOB_CLAIM_CLOSED ||
	    v.claim != TLOB_CLAIM_OPEN(READ_ONCE(w->start_ns)))
		return 0;

	b = bpf_map_lookup_elem(&bindings, &binding);
	if (!b || READ_ONCE(b->generation) != generation)
		return 0;

	/* A window that began after the look at the clock has not run over. */
	if (at->now >= READ_ONCE(w->start_ns) && window_judge(slot, place, at, &v, TLOB_N_ENDS)) {
		v.id = window_number(binding, at->now);
		/* Where it sleeps is told with its record, or not at all. */
		if (state == TLOB_SLEEPING && v.id != TLOB_ID_SUPPRESSED)
			v.has_room = limits_leave_room(b);
		if (v.has_room)
			stack_report(slot, v.id);
		window_violate(slot, place, &v, at, state);
		return 0;
	}
	next_add(next, w, b);
	return 0;
}

/*
 * Looks at all windows of the task in that slot. Returns whether that has to be done again soon.
 * Global, so that the verifier looks at it once.
 */
static __always_inline int task_check(__u32 slot)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct next before, next = { TLOB_NEVER, { TLOB_NEVER, TLOB_NEVER, TLOB_NEVER } };
	struct snapshot at;
	__u64 n_opens;
	__u32 state, i;

	if (!t || !READ_ONCE(t->task))
		return 0;

	n_opens = READ_ONCE(t->n_opens);
	ordered(&t->sequence);
	next_read(&before, t);
	if (!task_snapshot_remote(t, &at, &state))
		return 1;
	/* Asleep for how long, is known when it runs. */
	if (state == TLOB_SLEEPING && task_is_awake(t))
		return 1;

	for (i = 0; i < TLOB_WINDOWS_MAX; i++)
		window_check(slot, i, &at, state, &next);

	next_correct(t, &before, &next);
	if (READ_ONCE(t->n_opens) == n_opens)
		return 0;
	next_lower(t, &before);
	return 1;
}

/*
 * When to look again after a look that was in vain, or found a deadline that has passed meanwhile.
 */
static __always_inline __u64 timer_put_off(struct tlob_task *t, __u64 now)
{
	__u32 n = READ_ONCE(t->n_put_off);

	count(n_put_off);
	if (n < AGAIN_DOUBLING)
		WRITE_ONCE(t->n_put_off, n + 1);
	return now + (AGAIN_NS << (n & 15));
}

/* Can it be told, here and now, which windows of the task still have what bounds them? */
static __always_inline bool frames_are_known(struct tlob_task *t, __u32 slot)
{
	struct task_struct *current = bpf_get_current_task_btf();

	if ((__u64)current == t->task) {
		task_check_frames(current, t, slot);
		return true;
	}
	return READ_ONCE(t->state) != TLOB_RUNNING || !task_has_bounds(t);
}

/*
 * It has interrupted whoever had the CPU, whatever it finds: that is the price of the budget for
 * which it was armed.
 */
static __always_inline void timer_count(const struct tlob_task *t)
{
	__u32 binding = READ_ONCE(t->timer_binding);
	struct tlob_hits *hits = bpf_map_lookup_elem(&timer_hits, &binding);

	if (hits)
		hits_count(hits, READ_ONCE(timers_pace_ns));
}

static int on_timer(void *map, __u32 *key, struct slot_timer *timer)
{
	__u32 slot = *key;
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	__u64 now, deadline;
	bool again;

	if (!t)
		return 0;

	timer_count(t);
	/* Whoever looks from here on finds no timer and arms it, or is seen below. */
	__sync_lock_test_and_set(&t->timer_ns, 0);
	/* The task has ended; who gets its slot arms the timer anew. */
	if (!READ_ONCE(t->task))
		return 0;
	again = !frames_are_known(t, slot) || task_check(slot);
	/* It is in the middle of a stop, without a CPU: its way back arms the timer. */
	if (again && READ_ONCE(t->ending) && READ_ONCE(t->state) != TLOB_RUNNING)
		return 0;

	now = bpf_ktime_get_ns();
	deadline = again ? now : task_deadline(t);
	if (deadline <= now)
		deadline = timer_put_off(t, now);
	else
		WRITE_ONCE(t->n_put_off, 0);
	timer_arm(t, slot, deadline, now);
	return 0;
}

/* Of a task that runs, the tick sees to it. */
static __always_inline bool task_may_run_over(struct tlob_task *t, __u32 slot)
{
	if (READ_ONCE(t->state) != TLOB_RUNNING && task_deadline(t) < bpf_ktime_get_ns())
		task_check(slot);
	return task_deadline(t) != TLOB_NEVER;
}

static __always_inline bool keyed_may_run_over(struct tlob_task *t, __u32 slot)
{
	struct next next = { TLOB_NEVER, { TLOB_NEVER, TLOB_NEVER, TLOB_NEVER } };
	struct snapshot at;
	__u32 state;

	if (READ_ONCE(t->next_ns) >= bpf_ktime_get_ns() || !task_snapshot_remote(t, &at, &state))
		return READ_ONCE(t->next_ns) != TLOB_NEVER;
	window_check(slot, 0, &at, state, &next);
	return next.ns != TLOB_NEVER;
}

/* Reports windows of it that have run over. Returns whether that may still come. */
static __always_inline bool slot_may_run_over(struct tlob_task *t, __u32 slot)
{
	__u64 task = READ_ONCE(t->task);

	if (!task)
		return false;
	return task == TLOB_TASK_OF_KEY ? keyed_may_run_over(t, slot) : task_may_run_over(t, slot);
}

static long slot_sweep(__u32 i, void *context)
{
	__u32 slot = 0;
	struct tlob_task *t = slot_dequeue(&untimed_slots, &n_untimed, &slot);

	if (!t)
		return 1;
	slot_unmark(t);
	if (!slot_may_run_over(t, slot) || __sync_val_compare_and_swap(&t->queued, 0, 1) != 0)
		return 0;
	slot_queue(&untimed_slots, &n_untimed, t, slot);
	return 0;
}

static int on_sweep(void *map, __u32 *key, struct slot_timer *timer)
{
	__u32 n;

	WRITE_ONCE(sweep_is_armed, 0);
	/* Each once. */
	n = READ_ONCE(n_untimed);
	bpf_loop(n < SWEEP_AT_ONCE ? n : SWEEP_AT_ONCE, slot_sweep, NULL, 0);
	if (READ_ONCE(n_untimed))
		sweep_arm();
	return 0;
}

#endif
