// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs that measure. Two kinds, which share one record per task:
 *
 *  - start and stop, attached as uprobes, one probe per site whatever the number of bindings there.
 *    The probe's cookie names the site, (site, cgroup) picks the bindings. A start notes the task's
 *    totals, a stop takes the difference.
 *  - hooks on the scheduler's tracepoints, which add the time since the last change to the total of
 *    the state that the task leaves. They do the same however many windows are open, and return at
 *    once for tasks that never had one.
 *
 * What one would miss: uprobe programs can be preempted at any instruction (only migration is off),
 * and the hooks then run for the very task that is in the middle of a start or stop. So statistics
 * are atomic, and totals are read under a sequence count. Hooks of one task exclude each other: the
 * scheduler calls them under the run-queue lock.
 *
 * Every time is bpf_ktime_get_ns(), CLOCK_MONOTONIC. No state is computed by subtraction from
 * elapsed: the three totals advance by the same clock readings that make up elapsed.
 */
#include "deadline.bpf.h"

#define CLOCK_MONOTONIC 1

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline void window_open(struct tlob_task *t, struct tlob_window *w, __u32 binding,
					const struct tlob_binding *b, __u64 generation,
					__u64 stack_pointer)
{
	struct next next = { TLOB_NEVER, { TLOB_NEVER, TLOB_NEVER, TLOB_NEVER } };
	struct snapshot at;

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
	WRITE_ONCE(w->generation, generation);

	/* A full barrier: see the top of deadline.bpf.h. */
	__sync_fetch_and_add(&t->n_opens, 1);
	next_add(&next, w, b);
	next_lower(t, &next);
}

/* A start of one binding; slot may be NO_SLOT. Global, as window_end(). */
__noinline int binding_start(__u32 slot, __u32 binding, __u64 stack_pointer)
{
	struct tlob_statistics *stats = bpf_map_lookup_elem(&statistics, &binding);
	struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &binding);
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	__u32 place = NO_PLACE, unused = NO_PLACE;
	struct snapshot at;
	__u64 generation;

	if (!b || !stats)
		return 0;
	generation = READ_ONCE(b->generation);
	if (!generation)
		return 0;

	if (t)
		place = window_find(t, generation, &unused);
	if (t && place < TLOB_WINDOWS_MAX) {
		if (!b->stop_is_return || stack_pointer < t->windows[place].stack_pointer) {
			count(stats->nested);
			return 0;
		}
		/* The frame of the open window is gone, and no return told. */
		task_snapshot(t, &at);
		window_end(slot, place, &at, TLOB_END_ABANDONED);
		unused = place;
	}

	count(stats->starts);
	if (!t || unused >= TLOB_WINDOWS_MAX)
		count(stats->over_limit);
	else
		window_open(t, &t->windows[unused], binding, b, generation, stack_pointer);
	return 0;
}

/* A stop of one binding, at the moment "at"; slot may be NO_SLOT. Global, as window_end(). */
__noinline int binding_stop(__u32 slot, __u32 binding, __u64 stack_pointer,
			    const struct snapshot *at)
{
	struct tlob_statistics *stats = bpf_map_lookup_elem(&statistics, &binding);
	struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &binding);
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	__u32 place = NO_PLACE, unused;
	__u64 generation;

	if (!b || !stats || !at)
		return 0;
	generation = READ_ONCE(b->generation);
	if (!generation)
		return 0;

	if (t)
		place = window_find(t, generation, &unused);
	if (!t || place >= TLOB_WINDOWS_MAX) {
		count(stats->unmatched);
		return 0;
	}
	/* The return of an inner call: its frame lies below that of the window. */
	if (b->stop_is_return &&
	    stack_pointer - RETURN_ADDRESS_SIZE < t->windows[place].stack_pointer)
		return 0;

	window_end(slot, place, at, TLOB_END_STOP);
	if (!task_has_windows(t))
		task_forget_deadlines(t);
	return 0;
}

/* The bindings of a site for the current task's cgroup at one depth. */
static __always_inline struct tlob_scope *scope_find(void *scopes, __u32 site, __u32 level)
{
	struct tlob_scope_key key = { .site = site };

	if (level != TLOB_LEVEL_UNCONFINED) {
		key.cgroup_id = bpf_get_current_ancestor_cgroup_id(level);
		if (!key.cgroup_id)
			return NULL;
	}
	return bpf_map_lookup_elem(scopes, &key);
}

static __always_inline struct tlob_site *site_find(void *sites, __u64 cookie)
{
	__u32 index = (__u32)cookie;
	struct tlob_site *site = bpf_map_lookup_elem(sites, &index);

	return site && site->generation == cookie >> 32 ? site : NULL;
}

/* Returns the slot of the task if a window may have been opened, else NO_SLOT. */
static __always_inline __u32 on_start(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct tlob_site *site = site_find(&start_sites, cookie);
	__u32 slot = NO_SLOT, i, j;

	if (!site)
		return NO_SLOT;

	for (i = 0; i < TLOB_LEVELS_MAX && i < site->n_levels; i++) {
		struct tlob_scope *scope = scope_find(&start_scopes, (__u32)cookie, site->level[i]);

		if (!scope)
			continue;
		if (slot == NO_SLOT)
			slot = task_slot(bpf_get_current_task_btf());
		if (slot == NO_SLOT)
			slot = task_new();
		for (j = 0; j < TLOB_SCOPE_MAX && j < scope->n; j++)
			binding_start(slot, scope->binding[j], PT_REGS_SP(ctx));
	}
	return slot;
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

static __always_inline int on_stop(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 slot = task_slot(task), i, j;
	struct tlob_task *t = task_at(slot, task);
	struct snapshot at = {};
	struct tlob_site *site;
	__u64 cookie;

	/* First, so that the window ends when the code that it measures does. */
	if (t)
		task_snapshot(t, &at);

	cookie = bpf_get_attach_cookie(ctx);
	site = site_find(&stop_sites, cookie);
	if (!site)
		return 0;

	for (i = 0; i < TLOB_LEVELS_MAX && i < site->n_levels; i++) {
		struct tlob_scope *scope = scope_find(&stop_scopes, (__u32)cookie, site->level[i]);

		if (!scope)
			continue;
		for (j = 0; j < TLOB_SCOPE_MAX && j < scope->n; j++)
			binding_stop(slot, scope->binding[j], PT_REGS_SP(ctx), &at);
	}
	return 0;
}

/*
 * Three times the same, for the two ways to attach a uprobe (uprobe_multi links, from Linux 6.6 on,
 * want programs of another attach type), and for kernels where the start may arm timers.
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

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	__u32 out_slot = task_slot(prev), in_slot = task_slot(next);
	struct tlob_task *out = task_at(out_slot, prev), *in = task_at(in_slot, next);
	__u64 now;

	if (!out && !in)
		return 0;

	now = bpf_ktime_get_ns();
	if (out) {
		task_account(out, preempt || !prev_state ? TLOB_WAITING : TLOB_SLEEPING, now);
		timer_arm(out, out_slot, task_deadline(out), now);
	}
	if (in) {
		task_account(in, TLOB_RUNNING, now);
		timer_arm(in, in_slot, task_deadline(in), now);
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	__u32 slot = task_slot(task);
	struct tlob_task *t = task_at(slot, task);
	__u64 now;

	/* A task that has not gone to sleep yet can be woken too: that changes nothing. */
	if (!t || t->state != TLOB_SLEEPING)
		return 0;

	now = bpf_ktime_get_ns();
	task_account(t, TLOB_WAITING, now);
	timer_arm(t, slot, task_deadline(t), now);
	return 0;
}

/*
 * The scheduler's tick is one of these, on each CPU that runs something. It finds the deadline of a
 * task that has not left the CPU since its window began, so that nobody could arm its timer.
 */
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_tick)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 slot = task_slot(task);
	struct tlob_task *t = task_at(slot, task);
	__u64 deadline, now;

	if (!t)
		return 0;
	deadline = task_deadline(t);
	if (deadline == TLOB_NEVER)
		return 0;

	now = bpf_ktime_get_ns();
	if (deadline < now && task_check(slot))
		deadline = now + AGAIN_NS;
	else if (deadline < now)
		deadline = task_deadline(t);
	timer_arm(t, slot, deadline, now);
	return 0;
}

static __always_inline int end_task(__u32 end)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 slot = task_slot(task);
	struct tlob_task *t = task_at(slot, task);
	struct snapshot at = {};
	int i;

	if (!t)
		return 0;

	task_snapshot(t, &at);
	for (i = 0; i < TLOB_WINDOWS_MAX; i++)
		window_end(slot, i, &at, end);
	task_free(task, t, slot);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	return end_task(TLOB_END_EXIT);
}

/* Its thread id may change too, so the task begins anew. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	return end_task(TLOB_END_EXEC);
}

/*
 * Run once by the daemon, on itself: how deep in the cgroup tree the cgroup of that id lies, which is the
 * root of the daemon's cgroup namespace. In a container the depths that it sees start there.
 */
SEC("syscall")
int find_root_level(struct tlob_root *root)
{
	__u32 level;

	for (level = 0; level < 64; level++)
		if (bpf_get_current_ancestor_cgroup_id(level) == root->cgroup_id) {
			root->level = level;
			root->found = 1;
			break;
		}
	return 0;
}

/* Run by the daemon before anything is attached, as often as needed. */
SEC("syscall")
int prepare_timers(struct tlob_timers *request)
{
	struct slot_timer *timer;
	__u32 i, slot;

	for (i = 0; i < 256 && i < request->n; i++) {
		slot = request->first + i;
		timer = bpf_map_lookup_elem(&timers, &slot);
		if (!timer || bpf_timer_init(&timer->timer, &timers, CLOCK_MONOTONIC) ||
		    bpf_timer_set_callback(&timer->timer, on_timer))
			break;
		request->done++;
	}
	return 0;
}

/* Run by the daemon when budgets have changed: what the task in that slot knows may be too late now. */
SEC("syscall")
int check_slot(__u32 *slot)
{
	__u32 index = *slot;
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &index);
	__u64 now = bpf_ktime_get_ns();

	if (t && t->task) {
		WRITE_ONCE(t->next_ns, 0);
		timer_arm(t, index, now, now);
	}
	return 0;
}
