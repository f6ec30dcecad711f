/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_PROCESS_BPF_H
#define BPF_PROGRAM_PROCESS_BPF_H

#include "bpf/program/lane.bpf.h"
#include "bpf/program/maps.bpf.h"
#include "bpf/program/task.bpf.h"

/*
 * Processes that the daemon sets probes in, in them alone: those of the units that are followed, at
 * each fork and exec in such a unit and when one moves there; and those that have a window which
 * unwinding can end. The exit of those that were told is told, too. A process is known by its group
 * leader. What is told twice does no harm, so nothing is held back here.
 */

/* Units that are followed; the daemon sets it. With none of them, nothing is looked at. */
__u32 n_units_followed = 0;

/*
 * Another number each time that the daemon begins to ask for the processes that could unwind, and 0
 * while it does not. The daemon sets it.
 */
__u32 unwinding_epoch = 0;

/* Events for which the ring buffer had no room: the daemon looks for all processes then. */
__u64 n_processes_lost = 0;

static __always_inline void process_tell(struct task_struct *task, __u32 event, __u32 unit)
{
	struct tlob_process_record *r;

	r = bpf_ringbuf_reserve(&process_records, sizeof(*r), 0);
	if (!r) {
		count(n_processes_lost);
		return;
	}
	r->event = event;
	r->unit = unit;
	r->tgid = BPF_CORE_READ(task, tgid);
	r->pid = pidns_inum ? pid_in_namespace(BPF_CORE_READ(task, group_leader)) : r->tgid;
	r->time_ns = bpf_ktime_get_ns();
	bpf_ringbuf_submit(r, 0);
}

static __always_inline void process_in_unit(struct task_struct *task, __u32 event, __u32 index)
{
	struct tlob_unit *u = bpf_map_lookup_elem(&units, &index);
	__u32 tgid = BPF_CORE_READ(task, tgid);
	__u8 yes = 1;

	if (!u || !READ_ONCE(u->followed))
		return;
	bpf_map_update_elem(&processes, &tgid, &yes, BPF_ANY);
	process_tell(task, event, index);
}

/*
 * The process of that leader is in that cgroup: is that a unit's, or an instance of a template?
 * Global, so that the verifier looks at it once; such a function takes numbers only.
 */
__noinline int process_in_cgroup(__u64 leader, __u32 event, __u64 id)
{
	struct task_struct *task = (struct task_struct *)leader;
	__u32 *index;

	index = bpf_map_lookup_elem(&units_by_cgroup, &id);
	if (index)
		process_in_unit(task, event, *index);
	index = bpf_map_lookup_elem(&instances, &id);
	if (index)
		process_in_unit(task, event, *index);
	return 0;
}

/* Its cgroup, and those above. */
static __always_inline void process_look(struct task_struct *task, __u32 event)
{
	struct cgroup *c = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	__u64 leader = (__u64)BPF_CORE_READ(task, group_leader);
	__u32 i;

	for (i = 0; i < TLOB_UNIT_LEVELS && c; i++) {
		struct cgroup_subsys_state *parent = BPF_CORE_READ(c, self.parent);

		process_in_cgroup(leader, event, BPF_CORE_READ(c, kn, id));
		if (!parent)
			break;
		c = (void *)parent - bpf_core_field_offset(struct cgroup, self);
	}
}

/* Its cgroup is that of its first instruction. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_process_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 slot;

	if (READ_ONCE(n_pages) && task_current(parent, &slot))
		lane_lend(parent, child, slot);
	if (READ_ONCE(n_units_followed) && child->pid == child->tgid)
		process_look(child, TLOB_PROCESS_FORKED);
	return 0;
}

/*
 * The current task has its first window that unwinding can end. Global, so that it has a stack of
 * its own.
 */
__noinline int process_unwinds(__u32 slot)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, epoch = READ_ONCE(unwinding_epoch), *told;
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);

	if (!t)
		return 0;
	WRITE_ONCE(t->unwinding_epoch, epoch);
	told = bpf_map_lookup_elem(&unwinding_processes, &tgid);
	if (told && *told == epoch)
		return 0;
	bpf_map_update_elem(&unwinding_processes, &tgid, &epoch, BPF_ANY);
	process_tell(bpf_get_current_task_btf(), TLOB_PROCESS_UNWINDS, t->owner);
	return 0;
}

static __always_inline bool processes_are_told(void)
{
	return READ_ONCE(n_units_followed) || READ_ONCE(unwinding_epoch);
}

/* A thread that was not the leader has become it: the probes are those of the leader before. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_process_exec, struct task_struct *task, int old_pid)
{
	__u32 tgid = task->tgid;

	if (!processes_are_told())
		return 0;
	if (old_pid != task->pid) {
		bpf_map_delete_elem(&unwinding_processes, &tgid);
		process_tell(task, TLOB_PROCESS_EXITED, TLOB_UNIT_NONE);
	}
	if (READ_ONCE(n_units_followed))
		process_look(task, TLOB_PROCESS_EXECUTED);
	return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_process_move, struct cgroup *to, const char *path, struct task_struct *task)
{
	if (READ_ONCE(n_units_followed) && !to->root->hierarchy_id)
		process_look(task, TLOB_PROCESS_MOVED);
	return 0;
}

/* The last thread, whichever it is. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_process_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	bool known;

	if (!processes_are_told() || BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	known = bpf_map_delete_elem(&processes, &tgid) == 0;
	known |= bpf_map_delete_elem(&unwinding_processes, &tgid) == 0;
	if (known)
		process_tell(task, TLOB_PROCESS_EXITED, TLOB_UNIT_NONE);
	return 0;
}

/* Run by the daemon, for what was there before. */
SEC("iter/task")
int find_processes(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 tgid;

	if (!task || task->pid != task->tgid)
		return 0;
	process_look(task, TLOB_PROCESS_FOUND);
	tgid = task->tgid;
	if (bpf_map_lookup_elem(&unwinding_processes, &tgid))
		process_tell(task, TLOB_PROCESS_UNWINDS, TLOB_UNIT_NONE);
	return 0;
}

#endif
