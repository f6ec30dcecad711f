// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs that measure. Three kinds, which share one record per task:
 *
 *  - start and stop (probe.bpf.h), attached as uprobes, one probe per site whatever the number of
 *    bindings there. The probe's cookie names the site, the site lists the bindings.
 *  - hooks on the scheduler's tracepoints, which add the time since the last change to the total of
 *    the state that the task leaves, and note who has to do with it. They do the same however many
 *    windows are open, and return at once for tasks that never had one;
 *  - begin and end of system calls (calls.bpf.h), attached while a binding measures one; and start
 *    and stop for events of the kernel (events.bpf.h) and of programs (user-events.bpf.h), attached
 *    as those for uprobes are.
 *
 * What one would miss: hooks of one task exclude each other, because the scheduler calls them under
 * the run-queue lock.
 *
 * Every time is bpf_ktime_get_ns(), CLOCK_MONOTONIC. No state is computed by subtraction from
 * elapsed: the three totals advance by the same clock readings that make up elapsed.
 */
#include "bpf/program/calls.bpf.h"
#include "bpf/program/events.bpf.h"
#include "bpf/program/unit.bpf.h"
#include "bpf/program/unwind.bpf.h"
#include "bpf/program/user-events.bpf.h"

#define CLOCK_MONOTONIC 1

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * Ends what is open of the current task, and lets its slot go, but for the task's storage. Global,
 * so that the verifier looks at it once.
 */
__noinline int task_end(__u32 slot, __u32 end)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct snapshot at = {};
	int i;

	if (!t)
		return 0;

	if (t->lane)
		lane_adopt(slot);
	/* A thread that ends itself unwinds its stack first. */
	if (end == TLOB_END_EXIT)
		task_check_frames(bpf_get_current_task_btf(), t, slot);
	task_ending(t, &at);
	for (i = 0; i < TLOB_WINDOWS_MAX; i++)
		window_end(slot, i, &at, end);
	task_ended(t);
	lane_leave(slot);
	task_free(t, slot);
	return 0;
}

/* A hook takes what another set of them has done for something missed: only one of them acts. */
static __always_inline bool hooks_act(void)
{
	return READ_ONCE(hooks_acting) == hooks_number;
}

/* Before the task leaves this CPU: which windows are there, and which have ended unseen. */
static __always_inline void task_settle_windows(struct task_struct *task, struct tlob_task *t,
						__u32 slot)
{
	if (t->lane)
		lane_adopt(slot);
	task_check_frames(task, t, slot);
}

/* One that has a lane keeps it, and the slot: of those there are not many. */
static __always_inline bool task_can_spare_slot(const struct tlob_task *t)
{
	return slots_are_short() && !t->lane && !task_has_windows(t);
}

/* Both for the task that is leaving this CPU, which next gets. */
static __always_inline void task_begins_to_wait(struct tlob_task *t, __u32 slot,
						struct task_struct *next, __u64 now)
{
	if (task_has_windows(t))
		waiter_add(t, slot, bpf_get_smp_processor_id(), next, now);
	task_enter(t, slot, TLOB_WAITING, now);
}

static __always_inline void task_begins_to_sleep(void *ctx, struct tlob_task *t, __u32 slot,
						 __u64 now)
{
	if (task_has_windows(t))
		stack_note(ctx, slot);
	task_falls_asleep(t, slot, now);
	task_enter(t, slot, TLOB_SLEEPING, now);
}

static __always_inline void task_gets_cpu(struct tlob_task *t, __u32 slot, struct task_struct *task,
					  __u64 now)
{
	if (t->state == TLOB_SLEEPING)
		task_found_awake(t, task, now);
	else if (t->state == TLOB_WAITING && !t->listed && task_has_windows(t))
		waiter_arrives(slot, now);
	if (t->listed)
		waiter_leaves(slot);
	task_enter(t, slot, TLOB_RUNNING, now);
	t->arrived = true;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct tlob_task *out, *in;
	__u32 out_slot, in_slot;
	__u64 now;

	if (!hooks_act())
		return 0;
	if (READ_ONCE(n_waiters) && waiters_credit())
		cpu_given_to(next);
	slots_arm_left();
	if (!task_may_have_slot(prev) && !task_may_have_slot(next))
		return 0;
	out = task_current(prev, &out_slot);
	in_slot = task_slot(next);
	in = task_at(in_slot, next);

	/* Its storage goes with it. */
	if (out && prev_state == TASK_DEAD) {
		task_end(out_slot, TLOB_END_EXIT);
		out = NULL;
	}
	if (in)
		current_slot_set(in_slot);
	else if (!out)
		return 0;
	if (out)
		task_settle_windows(prev, out, out_slot);
	if (out && !preempt && prev->__state && task_can_spare_slot(out)) {
		task_free(out, out_slot);
		out = NULL;
	}

	if (out) {
		task_must_run(out);
		sched_clock_compare(out, prev);
		task_change(out);
		out->run_delay_ns = run_delay(prev);
		out->last_cpu = bpf_get_smp_processor_id();
	}
	if (in)
		task_change(in);
	now = bpf_ktime_get_ns();
	if (out) {
		/* One that a signal kept from falling asleep may be called asleep all the same. */
		bool waits = preempt || !prev_state || !prev->__state;

		if (waits)
			task_begins_to_wait(out, out_slot, next, now);
		else
			task_begins_to_sleep(ctx, out, out_slot, now);
	}
	if (in) {
		task_gets_cpu(in, in_slot, next, now);
		timer_fetch(in, in_slot, now);
	}
	return 0;
}

/* Here, and not in sched_wakeup, it is always the waker that runs on this CPU. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	__u32 slot = task_slot(task);
	struct tlob_task *t = task_at(slot, task);
	__u64 now;

	/* Did a budget run out in this sleep, or should it have by now? */
	if (!t || t->state != TLOB_SLEEPING || !task_has_windows(t) || !hooks_act())
		return 0;
	now = bpf_ktime_get_ns();
	if (t->over_sleep == t->n_sleeps || task_deadline(t) < now)
		waker_note(ctx, t, now);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	__u32 slot = task_slot(task);
	struct tlob_task *t = task_at(slot, task);
	__u64 now;

	/* A task that has not gone to sleep yet can be woken too: that changes nothing. */
	if (!t || t->state != TLOB_SLEEPING || !hooks_act())
		return 0;

	task_change(t);
	now = bpf_ktime_get_ns();
	task_enter(t, slot, TLOB_WAITING, now);
	if (task_has_windows(t))
		waiter_add(t, slot, task_cpu(task), NULL, now);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *task)
{
	__u32 slot = task_slot(task);
	struct tlob_task *t = task_at(slot, task);

	if (!t || !hooks_act())
		return 0;
	if (t->state == TLOB_SLEEPING && !task->__state)
		t->last_cpu = TLOB_CPU_LEFT;
	else if (t->state == TLOB_WAITING && task_has_windows(t))
		waiter_moves(slot, bpf_ktime_get_ns());
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
	struct tlob_task *t;
	__u64 deadline, now;
	__u32 slot;

	interrupts_learn();
	if (!hooks_act())
		return 0;
	slots_arm_left();
	if (!task_may_have_slot(task))
		return 0;
	t = task_current(task, &slot);
	if (!t)
		return 0;
	task_must_run(t);
	if (lane_has_run_over(t))
		lane_adopt(slot);
	deadline = task_deadline(t);
	if (deadline == TLOB_NEVER)
		return 0;

	now = bpf_ktime_get_ns();
	if (deadline < now)
		task_check_frames(task, t, slot);
	if (deadline < now)
		deadline = task_check(slot) ? now + AGAIN_NS : task_deadline(t);
	timer_arm(t, slot, deadline, now);
	return 0;
}

static __always_inline int end_current(__u32 end)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 slot;

	if (end == TLOB_END_EXEC || !task->signal->live.counter)
		keyed_end_process(end);
	if (!task_current(task, &slot))
		return 0;
	task_end(slot, end);
	bpf_task_storage_delete(&slots, task);
	return 0;
}

/*
 * From Linux 7.0 on, programs on this and the next tracepoint can be preempted, and for that long
 * another task on the CPU finds them in use, and is left out without a word. One that exits is
 * caught when it leaves its CPU for the last time.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	return end_current(TLOB_END_EXIT);
}

/* What a process leaves open has no other to catch it. Who gets here second finds nothing left. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit_again, struct task_struct *task)
{
	if (!task->signal->live.counter)
		keyed_end_process(TLOB_END_EXIT);
	return 0;
}

/* Its thread id may change too, so the task begins anew. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	return end_current(TLOB_END_EXEC);
}

/* For the same reason. Who gets here after the other finds nothing left to do. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec_again, struct task_struct *task)
{
	return end_current(TLOB_END_EXEC);
}

/*
 * Run once by the daemon, on itself: how deep in the cgroup tree the cgroup of that id lies, which
 * is the root of the daemon's cgroup namespace. In a container the depths that it sees start there.
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

/* Run once by the daemon, on itself, so that it is not measured. */
SEC("syscall")
int leave_out_caller(void *context)
{
	own_tgid = bpf_get_current_pid_tgid() >> 32;
	return 0;
}

/* Run by the daemon before anything is attached, as often as needed. */
SEC("syscall")
int prepare_timers(struct tlob_timers *request)
{
	struct slot_timer *timer;
	__u32 i, slot = 0;
	long r;

	/* First of all; it may be there by now. */
	timer = bpf_map_lookup_elem(&sweep_timer, &slot);
	r = timer ? bpf_timer_init(&timer->timer, &sweep_timer, CLOCK_MONOTONIC) : 0;
	if (r && r != -EBUSY)
		return 0;
	for (i = 0; i < 256 && i < request->n; i++) {
		slot = request->first + i;
		timer = bpf_map_lookup_elem(&timers, &slot);
		if (!timer || bpf_timer_init(&timer->timer, &timers, CLOCK_MONOTONIC))
			break;
		request->done++;
	}
	return 0;
}

static long timer_set_callback(__u32 slot, void *context)
{
	struct slot_timer *timer = bpf_map_lookup_elem(&timers, &slot);

	/* One that could not be set up cannot be started either: that is counted then. */
	if (timer)
		bpf_timer_set_callback(&timer->timer, on_timer);
	return 0;
}

/*
 * Run by the daemon after that, on itself. An iterator, because it may set a callback that takes
 * stacks through tasks: programs on uprobes may not, and in one that may sleep, as that above,
 * newer kernels take it for sleeping. One over tasks: a kernel was met that refuses those over
 * maps.
 */
SEC("iter/task")
int set_callbacks(struct bpf_iter__task *ctx)
{
	struct slot_timer *timer;
	__u32 key = 0;

	if (!ctx->task)
		return 0;
	timer = bpf_map_lookup_elem(&sweep_timer, &key);
	if (timer)
		bpf_timer_set_callback(&timer->timer, on_sweep);
	bpf_loop(slots_max, timer_set_callback, NULL, 0);
	return 0;
}

/*
 * Run by the daemon when a process has ended: its tasks have left their lanes, but for those of
 * which no hook was told.
 */
SEC("syscall")
int settle_page(__u32 *page)
{
	__u32 first = *page * TLOB_LANES, i, mark;

	for (i = 0; i < TLOB_LANES; i++) {
		__u32 index = first + i;
		struct tlob_lane_holder *holder = bpf_map_lookup_elem(&lane_holders, &index);

		if (!holder)
			continue;
		for (mark = 0; mark < TLOB_LANE_MARKS; mark++) {
			lane_settle(index, mark);
			grant_at(holder, mark)->generation = 0;
		}
		holder->task = 0;
	}
	return 0;
}

/*
 * Run by the daemon when budgets have changed: what the task in that slot knows may be too late
 * now.
 */
SEC("syscall")
int check_slot(__u32 *slot)
{
	__u32 index = *slot;
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &index);
	__u64 now = bpf_ktime_get_ns();

	if (!t || !t->task)
		return 0;
	WRITE_ONCE(t->next_ns, 0);
	/*
	 * Of others, tend_keyed() sees to it. Such a program may not use queues before 6.12: what
	 * has no timer is looked at when it leaves its CPU.
	 */
	if (t->task != TLOB_TASK_OF_KEY && index < READ_ONCE(slots_timed) && !timer_is_due(t, now))
		timer_set(t, index, now, now);
	return 0;
}
