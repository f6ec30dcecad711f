/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_HITS_BPF_H
#define BPF_PROGRAM_HITS_BPF_H

#include "bpf/program/maps.bpf.h"

/*
 * What a measurement takes from those who are measured, counted as it happens: hits of probes,
 * system calls, timers. What each of them costs, the daemon knows.
 */

/* The daemon is woken when there are so many hits in less than that time. */
static __always_inline void hits_count(struct tlob_hits *hits, __u64 pace_ns)
{
	__u32 type = TLOB_RECORD_NOTICE;
	__u64 now;

	if (__sync_fetch_and_add(&hits->n, 1) & (TLOB_HITS_LOOK - 1))
		return;
	now = bpf_ktime_get_ns();
	if (now - READ_ONCE(hits->looked_ns) < pace_ns && __sync_fetch_and_add(&hits_alarm, 1) == 0)
		bpf_ringbuf_output(&records, &type, sizeof(type), 0);
	WRITE_ONCE(hits->looked_ns, now);
}

#endif
