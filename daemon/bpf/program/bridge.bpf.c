// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Arms timers from starts on kernels where a uprobe program may not, and a tracing program may: it
 * is attached to a function of the start's program, which does nothing else but be called. It
 * shares all maps with tlob.bpf.c, and is an object of its own because that one must be loaded
 * first.
 *
 * A tracing program that is preempted keeps another on its CPU from running, without a word: so the
 * start looks whether it ran.
 */
#include "bpf/program/deadline.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("fentry/deadline_bridge")
int BPF_PROG(arm_from_start, __u32 slot)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);

	if (t)
		timer_arm_now(t, slot);
	slots_arm_left();
	return 0;
}
