/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_CALLS_BPF_H
#define BPF_PROGRAM_CALLS_BPF_H

#include "bpf/program/probe.bpf.h"

/*
 * System calls as windows, and as events between which windows are: a pair of programs that the
 * kernel runs as it begins a call and as it is done with one. From the number of the call to its
 * site, and on from there as from a probe; no program is touched. They run for each system call of
 * the machine, so that both return at once for what nobody measures.
 *
 * A task is in one system call at a time, and signal handlers run after the end of the call that
 * the signal has come upon. So an end is the end of all windows of the task that are system calls,
 * and has no site; without such a window it says nothing: the call had begun before anybody
 * measured it, was denied by seccomp before it began, or is the first return of a new task.
 *
 * A tracer and seccomp have had their say before the kernel begins a call: the number is what it
 * does.
 *
 * From Linux 7.0 on, programs on tracepoints can be preempted, and for that long all other tasks on
 * the CPU are left out (see on_exit()): under load that is more than half of all calls (seen on
 * 7.3). Those that are attached by way of a perf event, which costs more, cannot be preempted: so
 * there are two pairs for who can have them.
 *
 * Who is left out all the same has lost a beginning: that call is not measured. After a lost end,
 * the task is in no system call, or in another one, which its registers show: then the window has
 * been left, as that of a function whose frame is gone (frame.bpf.h).
 */

#if defined(__TARGET_ARCH_x86)

static __always_inline void calls_count(void)
{
	struct tlob_hits *hits;
	__u32 key = 0;

	hits = bpf_map_lookup_elem(&call_hits, &key);
	if (hits)
		hits_count(hits, READ_ONCE(calls_pace_ns));
}

/* When a call that is an event has begun, and when it has ended, as long as a program runs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct snapshot);
} call_moments SEC(".maps");

static __always_inline void call_hit(struct hit *hit, struct tlob_task *t, __u64 cookie)
{
	struct tlob_site *site = site_find(&start_sites, cookie);

	if (!site)
		return;
	hit->cookie = cookie;
	site_count_hit(SIDE_START, (__u32)cookie);
	lane_adopt_first(hit->slot);
	probes_add(t, site);
	site_hit(site, hit, SIDE_START);
}

/*
 * In that role, the call begins windows; call: of those that are the call, its number plus one.
 * Global, so that the verifier looks at it once, and so that who calls it has little on the stack:
 * with what a window takes there it is nearly full.
 */
__noinline int call_starts(__u32 role, __u32 number, __u32 call)
{
	__u64 cookie, cookie_before;
	struct tlob_task *t;
	struct hit hit;
	__u32 slot;

	if (role >= TLOB_CALL_ROLES || number >= TLOB_CALLS_MAX)
		return 0;
	cookie = READ_ONCE(calls[role][number].cookie);
	cookie_before = READ_ONCE(calls[role][number].cookie_before);
	if (!cookie && !cookie_before)
		return 0;
	hit_init(&hit);
	hit.call = call;
	t = task_current(bpf_get_current_task_btf(), &hit.slot);
	if (cookie)
		call_hit(&hit, t, cookie);
	if (cookie_before && cookie_before != cookie)
		call_hit(&hit, t, cookie_before);
	slot = hit.slot;
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (t)
		timer_arm_now(t, slot);
	return 0;
}

/*
 * In that role, it is where windows end. Global, as above; and the moment is in a map for want of
 * stack: no program runs twice on a CPU at once.
 */
__noinline int call_stops(__u32 role, __u32 number)
{
	__u64 cookie, cookie_before;
	struct snapshot *at;
	struct hit hit;
	__u32 key = role == TLOB_CALL_END_STOPS;

	at = bpf_map_lookup_elem(&call_moments, &key);
	if (!at || role >= TLOB_CALL_ROLES || number >= TLOB_CALLS_MAX)
		return 0;
	cookie = READ_ONCE(calls[role][number].cookie);
	cookie_before = READ_ONCE(calls[role][number].cookie_before);
	if (!cookie && !cookie_before)
		return 0;
	hit_init(&hit);
	hit.cookie = cookie;
	if (cookie)
		hit_stop(&hit, at);
	if (cookie_before && cookie_before != cookie) {
		hit.cookie = cookie_before;
		hit_stop(&hit, at);
	}
	return 0;
}

#define BEGIN_ROLES (1U << TLOB_CALL_BEGIN_STARTS | 1U << TLOB_CALL_BEGIN_STOPS)
#define END_ROLES   (1U << TLOB_CALL_END_STARTS | 1U << TLOB_CALL_END_STOPS)

static __always_inline int on_any_call(__u32 number)
{
	const struct tlob_call *window;

	if (READ_ONCE(calls_acting) != hooks_number)
		return 0;
	calls_count();
	number = call_number(bpf_get_current_task_btf(), number);
	if (READ_ONCE(calls_roles) & BEGIN_ROLES) {
		call_stops(TLOB_CALL_BEGIN_STOPS, number);
		call_starts(TLOB_CALL_BEGIN_STARTS, number, 0);
	}
	if (number >= TLOB_CALLS_MAX)
		return 0;
	window = &calls[TLOB_CALL_WINDOW][number];
	if (READ_ONCE(window->cookie) || READ_ONCE(window->cookie_before))
		call_starts(TLOB_CALL_WINDOW, number, number + 1);
	return 0;
}

/* The current task has come to the end of that system call. Global, as above. */
__noinline int calls_end(__u32 slot, __u32 call)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct snapshot at = {};
	__u32 mask, i;

	if (!t)
		return 0;
	/* First, so that the window ends when the call does. */
	task_ending(t, &at);
	mask = READ_ONCE(t->calls);
	for (i = 0; i < TLOB_WINDOWS_MAX && mask; i++, mask >>= 1) {
		if (!(mask & 1))
			continue;
		if (t->windows[i].call == call)
			window_end(slot, i, &at, TLOB_END_STOP);
		else
			window_abandon(slot, i, &at);
	}
	WRITE_ONCE(t->calls, 0);
	if (!task_has_windows(t)) {
		task_forget_deadlines(t);
		WRITE_ONCE(t->lowest_frame, TLOB_NEVER);
	}
	task_ended(t);
	return 0;
}

static __always_inline int on_any_call_end(__u32 call)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct tlob_task *t;
	__u32 slot;

	if (READ_ONCE(calls_acting) != hooks_number)
		return 0;
	if (task_may_have_slot(task)) {
		t = task_current(task, &slot);
		if (t && READ_ONCE(t->calls))
			calls_end(slot, call);
	}
	if (READ_ONCE(calls_roles) & END_ROLES) {
		call_stops(TLOB_CALL_END_STOPS, call - 1);
		call_starts(TLOB_CALL_END_STARTS, call - 1, 0);
	}
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_call, struct pt_regs *regs, long id)
{
	return on_any_call((__u32)id);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_call_end, struct pt_regs *regs, long ret)
{
	return on_any_call_end(call_of(bpf_get_current_task_btf(), regs));
}

/* What both events begin with. */
struct call_event {
	__u64 common;
	long id;
};

SEC("tp/raw_syscalls/sys_enter")
int on_call_perf(struct call_event *event)
{
	return on_any_call((__u32)event->id);
}

SEC("tp/raw_syscalls/sys_exit")
int on_call_end_perf(struct call_event *event)
{
	return on_any_call_end(call_number(bpf_get_current_task_btf(), (__u32)event->id) + 1);
}

#else

/* What its registers show of a call is not known here: nothing is ever attached. */
SEC("tp_btf/sys_enter")
int BPF_PROG(on_call)
{
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_call_end)
{
	return 0;
}

SEC("tp/raw_syscalls/sys_enter")
int on_call_perf(void *event)
{
	return 0;
}

SEC("tp/raw_syscalls/sys_exit")
int on_call_end_perf(void *event)
{
	return 0;
}

#endif

#endif
