/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef KERNEL_BPF_H
#define KERNEL_BPF_H

#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "tlob-record.h"

/* The few kernel structures that are looked into, relocated when the object is loaded. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct kernfs_node {
	__u64 id;
};

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct cgroup_subsys_state self;
	int level;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct bpf_iter__bpf_map_elem {
	void *key; /* NULL: the last has been seen */
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct bpf_local_storage;

/* The kernel's own account of waiting (CONFIG_SCHED_INFO): up to the last time that the task got a CPU. */
struct sched_info {
	unsigned long long run_delay;
};

struct task_struct {
	struct sched_info sched_info;
	int pid;
	int tgid;
	char comm[TLOB_COMM_LEN];
	struct pid *thread_pid;
	struct task_struct *group_leader;
	struct css_set *cgroups;
	struct bpf_local_storage *bpf_storage;
};

#pragma clang attribute pop

#define TASK_DEAD 0x80 /* in prev_state of sched_switch; since Linux 4.14 */

#define READ_ONCE(x)	 (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))

#define count(field) __sync_fetch_and_add(&(field), 1)

/*
 * Keeps loads before it before loads after it, and stores before stores. BPF has no fence, but an
 * atomic operation that returns something is one.
 */
#if defined(__TARGET_ARCH_x86)
#define ordered() barrier()
#else
#define ordered()                                                                                  \
	do {                                                                                       \
		__u64 fence = 0;                                                                   \
		__sync_fetch_and_add(&fence, 1);                                                   \
	} while (0)
#endif

/*
 * At a return the return address is off the stack on x86, and was never on it elsewhere: what to take
 * from the stack pointer there to get the one that the function was entered with.
 */
#if defined(__TARGET_ARCH_x86)
#define RETURN_ADDRESS_SIZE 8
#else
#define RETURN_ADDRESS_SIZE 0
#endif

#endif
