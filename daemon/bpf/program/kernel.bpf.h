/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_KERNEL_BPF_H
#define BPF_PROGRAM_KERNEL_BPF_H

#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/layout.h"

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

struct bpf_iter__task {
	struct task_struct *task; /* NULL: the last has been seen */
};

struct kallsym_iter {
	unsigned long value;
	char name[1];
	char module_name[1];
};

struct bpf_iter__ksym {
	struct kallsym_iter *ksym; /* NULL: the last has been seen */
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
};

struct bpf_local_storage;

/*
 * The kernel's own account of waiting (CONFIG_SCHED_INFO), by the scheduler's clock: how long up to
 * the last time that the task got a CPU, when that was, and since when it is on a run queue, if it
 * waits.
 */
struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_arrival;
	unsigned long long last_queued;
};

struct xol_area {
	unsigned long
		/* where what return probes put into the place of return addresses points to */
		vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	unsigned long start_stack;
	unsigned long flags;
	struct uprobes_state uprobes_state;
};

/* The same, since Linux 6.18. */
struct mm_struct___bitmap {
	struct {
		unsigned long __mm_flags[1];
	} flags;
};

/* Where that is kept since Linux 7.3. */
enum task_dumpable {
	TASK_DUMPABLE_OFF,
	TASK_DUMPABLE_OWNER, /* the user who has the process may look into it */
	TASK_DUMPABLE_ROOT,
};

struct task_exec_state {
	enum task_dumpable dumpable;
};

typedef struct {
	__u32 val;
} kuid_t;

struct cred {
	kuid_t uid;
	kuid_t suid;
	kuid_t euid;
};

struct vm_area_struct {
	unsigned long vm_start;
};

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
	unsigned long features; /* CONFIG_X86_USER_SHADOW_STACK */
};
#elif defined(__TARGET_ARCH_arm64)
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};
#endif

struct list_head {
	struct list_head *next;
	struct list_head *prev;
};

struct arch_uprobe {
	__u8 insn[16]; /* the instruction that the probe is on; x86 */
};

/* A probe on one place, whoever has set it. */
struct uprobe {
	struct list_head consumers; /* since Linux 6.13 */
	struct arch_uprobe arch;
};

struct uprobe_task {
	struct arch_uprobe *auprobe; /* that of the probe whose programs run */
};

struct rq {
	__u64 prev_steal_time_rq; /* CONFIG_PARAVIRT_TIME_ACCOUNTING */
};

struct cfs_rq {
	struct rq *rq;
	int throttle_count; /* how many quotas are used up, here and above; CONFIG_CFS_BANDWIDTH */
	/* For how long some were: by a clock that is near enough, and, since Linux 6.6, by rq's. */
	__u64 throttled_clock_pelt_time;
	__u64 throttled_clock_self_time;
	__u64 throttled_clock_self; /* since when some are, while a task waits there; 0: none is */
};

struct sched_entity {
	struct cfs_rq *cfs_rq; /* CONFIG_FAIR_GROUP_SCHED; of tasks of all classes */
};

struct thread_info {
	__u32 status;
	__u32 cpu; /* x86: since Linux 5.16 */
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state; /* 0: it runs, or is on a run queue; since Linux 5.14 */
	struct sched_info sched_info;
	struct sched_entity se;
	int prio;	/* below 100: real time */
	bool throttled; /* its quota is used up; CONFIG_CFS_BANDWIDTH, since Linux 6.18 */
	unsigned int flags;
	int pid;
	int tgid;
	char comm[TLOB_COMM_LEN];
	struct pid *thread_pid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct css_set *cgroups;
	struct bpf_local_storage *bpf_storage;
	struct mm_struct *mm;
	const struct cred *cred;
	struct task_exec_state *exec_state;
	struct uprobe_task *utask;
	unsigned long sas_ss_sp; /* the stack for signal handlers that want one */
	unsigned long sas_ss_size;
#if defined(__TARGET_ARCH_x86) || defined(__TARGET_ARCH_arm64)
	struct thread_struct thread;
#endif
};

#pragma clang attribute pop

#define PF_FORKNOEXEC 0x40	 /* in flags: it was forked, and is still the program that it was */
#define PF_KTHREAD    0x00200000 /* a thread of the kernel */

#define TS_COMPAT 0x0002 /* x86, in the status: in a system call of 32 bits */

#define EBUSY 16

#define TASK_DEAD 0x80 /* in prev_state of sched_switch; since Linux 4.14 */

#define READ_ONCE(x)	 (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))

/*
 * The same value, of which the verifier does not know any more which it is, because it comes from
 * memory that is not its stack: so it does not look at what follows once for each value.
 */
#define unlearned(memory, value)                                                                   \
	({                                                                                         \
		WRITE_ONCE(memory, value);                                                         \
		READ_ONCE(memory);                                                                 \
	})

#define count(field) __sync_fetch_and_add(&(field), 1)

static __always_inline __u64 minimum(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/*
 * Adds, and is a full barrier. On x86 every atomic operation is one; elsewhere those that return
 * something, as they do if that is used.
 */
static __always_inline void add_fully(__u64 *word, __u64 by)
{
#if defined(__TARGET_ARCH_x86)
	__sync_fetch_and_add(word, by);
#else
	asm volatile("" : : "r"(__sync_fetch_and_add(word, by)));
#endif
}

/*
 * Keeps loads before it before loads after it, and stores before stores. BPF has no fence. Where
 * one is needed, nothing is added to a word of the memory that is touched there anyway: one on the
 * stack would take room.
 */
#if defined(__TARGET_ARCH_x86)
#define ordered(word) barrier()
#else
#define ordered(word) add_fully((__u64 *)(word), 0)
#endif

/*
 * At a return the return address is off the stack on x86, and was never on it elsewhere: what to
 * take from the stack pointer there to get the one that the function was entered with.
 */
#if defined(__TARGET_ARCH_x86)
#define RETURN_ADDRESS_SIZE 8
#else
#define RETURN_ADDRESS_SIZE 0
#endif

#endif
