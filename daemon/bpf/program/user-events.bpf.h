/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_USER_EVENTS_BPF_H
#define BPF_PROGRAM_USER_EVENTS_BPF_H

#include "bpf/program/events.bpf.h"

/*
 * Windows between events that programs write (CONFIG_USER_EVENTS). The kernel runs no BPF programs
 * on these, but gives them to perf events, of which each site has one on every CPU. So there is a
 * program where a perf event begins to be written down, which finds in it what the daemon has put
 * there: the side, whose it is, and the cookie of the site. That others sample on the machine costs
 * each sample some comparisons.
 *
 * The current task is the one that writes the event, and cannot be preempted meanwhile.
 */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct perf_event_attr {
	__u32 type;
	__u64 config;
	__u64 config1;
	__u64 config2;
};

struct perf_event {
	struct perf_event_attr attr;
};

#pragma clang attribute pop

#define PERF_TYPE_TRACEPOINT 2

/* Global, so that the verifier looks at it once. */
__noinline int user_event_starts(__u64 cookie, __u32 number)
{
	struct tlob_site *site = site_find(&start_sites, cookie);
	struct hit hit;

	hit_init(&hit);
	hit.cookie = cookie;
	if (site && site->user_event == number)
		event_arm(event_starts(&hit, site));
	return 0;
}

__noinline int user_event_stops(__u64 cookie, __u32 number)
{
	struct tlob_site *site = site_find(&stop_sites, cookie);
	struct snapshot at = {};
	struct hit hit;

	hit_init(&hit);
	hit.cookie = cookie;
	if (site && site->user_event == number)
		hit_stop(&hit, &at);
	return 0;
}

SEC("fentry/perf_output_begin_forward")
int BPF_PROG(on_sample, void *handle, void *data, struct perf_event *event)
{
	__u64 of = event->attr.config2;

	/* Users may sample what their own processes do, as they like; others come in interrupts. */
	if (event->attr.type != PERF_TYPE_TRACEPOINT)
		return 0;
	if (of == TLOB_USER_EVENT_OF(hooks_number, SIDE_START))
		user_event_starts(event->attr.config1, (__u32)event->attr.config);
	else if (of == TLOB_USER_EVENT_OF(hooks_number, SIDE_STOP))
		user_event_stops(event->attr.config1, (__u32)event->attr.config);
	return 0;
}

#endif
