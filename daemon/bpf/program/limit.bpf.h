/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_LIMIT_BPF_H
#define BPF_PROGRAM_LIMIT_BPF_H

#include "bpf/program/maps.bpf.h"

/*
 * What a program that breaks its budget all the time takes from others: violations beyond a limit
 * are only counted, so that they cost nobody who reads them; and what is within the limit does not
 * fill the ring buffer when nobody reads it fast enough.
 */

/* Is one more within the limit, of which that much is used up? Then it counts. */
static __always_inline bool limit_admit(const struct tlob_limit *limit, __u64 *until_ns, __u64 now)
{
	__u64 each = READ_ONCE(limit->each_ns), old, from;
	int i;

	if (!each)
		return true;
	for (i = 0; i < 4; i++) {
		old = READ_ONCE(*until_ns);
		from = old > now ? old : now;
		if (from - now > READ_ONCE(limit->burst_ns))
			return false;
		if (__sync_val_compare_and_swap(until_ns, old, from + each) == old)
			return true;
	}
	return false;
}

/*
 * Does the limit let another violation of the binding through? The limit of all holds back no
 * binding that has had none for as long as a burst lasts: others do not silence it. What is a
 * user's own takes nothing from it.
 */
static __always_inline bool limits_admit(struct tlob_binding *b, __u64 now)
{
	__u64 until = READ_ONCE(b->reported_until_ns);
	bool rested = !until || until + READ_ONCE(report_limit.burst_ns) <= now;

	if (!limit_admit(&report_limit, &b->reported_until_ns, now))
		return false;
	return b->owner || limit_admit(&overall_limit, &overall_until_ns, now) || rested;
}

/*
 * May the binding put another record into the ring buffer? Once the common part of that is full,
 * each has its share of the rest, which is its own again when all of it has been read. Two CPUs can
 * count one record for both of theirs.
 */
static __always_inline bool limits_leave_room(struct tlob_binding *b)
{
	if (!b)
		return false;
	if (bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA) < READ_ONCE(ring_common))
		return true;
	if (bpf_ringbuf_query(&records, BPF_RB_CONS_POS) > READ_ONCE(b->shared_until))
		WRITE_ONCE(b->n_shared, 0);
	if (READ_ONCE(b->n_shared) >= READ_ONCE(ring_share))
		return false;
	__sync_fetch_and_add(&b->n_shared, 1);
	WRITE_ONCE(b->shared_until, bpf_ringbuf_query(&records, BPF_RB_PROD_POS));
	return true;
}

#endif
