/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_EVENTS_BPF_H
#define BPF_PROGRAM_EVENTS_BPF_H

#include "bpf/program/interrupt.bpf.h"
#include "bpf/program/probe.bpf.h"

/*
 * Windows between events of the kernel: the same as probe.bpf.h, for programs on tracepoints, which
 * are attached by way of a perf event, so that they have a cookie, and cannot be preempted. There
 * are neither registers nor frames, and none of them is on an event that the others can cause
 * (core/base/trace-event.c). Events that are probes in programs take the programs for probes; and
 * those of system calls the pair that sees all calls (calls.bpf.h), because from Linux 7.0 on, what
 * is attached to a single one can be preempted after all, and tasks are left out for that long.
 *
 * What the current task has nothing to do with is left out: hits in interrupts, and those of the
 * kernel's own threads, which are in no unit. They are counted as hits of others.
 */

static __always_inline bool event_is_of_task(void)
{
	return !(bpf_get_current_task_btf()->flags & PF_KTHREAD) && !interrupts_run();
}

static __always_inline __u32 event_starts(struct hit *hit, struct tlob_site *site)
{
	struct tlob_task *t = task_current(bpf_get_current_task_btf(), &hit->slot);

	site_count_hit(SIDE_START, (__u32)hit->cookie);
	lane_adopt_first(hit->slot);
	probes_add(t, site);
	site_hit(site, hit, SIDE_START);
	return hit->slot;
}

/* As start_multi_arm. */
static __always_inline void event_arm(__u32 slot)
{
	struct tlob_task *t;

	if (slot == NO_SLOT)
		return;
	t = bpf_map_lookup_elem(&tasks, &slot);
	if (t)
		timer_arm_now(t, slot);
}

static __always_inline __u32 on_event_start(void *ctx)
{
	struct tlob_site *site;
	struct hit hit;

	hit_init(&hit);
	hit.cookie = bpf_get_attach_cookie(ctx);
	site = site_find(&start_sites, hit.cookie);
	if (!site)
		return NO_SLOT;
	if (event_is_of_task())
		return event_starts(&hit, site);
	site_count_hit(SIDE_START, (__u32)hit.cookie);
	count(site->n_outside);
	return NO_SLOT;
}

SEC("tp")
int event_start(void *ctx)
{
	on_event_start(ctx);
	return 0;
}

SEC("tp")
int event_start_arm(void *ctx)
{
	event_arm(on_event_start(ctx));
	return 0;
}

SEC("tp")
int event_stop(void *ctx)
{
	struct snapshot at = {};
	struct tlob_site *site;
	struct hit hit;

	hit_init(&hit);
	hit.cookie = bpf_get_attach_cookie(ctx);
	site = site_find(&stop_sites, hit.cookie);
	if (!site)
		return 0;
	if (event_is_of_task()) {
		hit_stop(&hit, &at);
		return 0;
	}
	site_count_hit(SIDE_STOP, (__u32)hit.cookie);
	count(site->n_outside);
	return 0;
}

#endif
