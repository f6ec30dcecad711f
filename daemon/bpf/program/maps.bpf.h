/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_MAPS_BPF_H
#define BPF_PROGRAM_MAPS_BPF_H

#include "bpf/program/kernel.bpf.h"

/*
 * What the programs know: constants that the daemon sets before loading, memory that it reads, and
 * the maps, whose sizes it sets. The layout of the values is in bpf/layout.h.
 */

/* The compiler does not know it, and the verifier does. */
const volatile bool never = false;

/* Set before loading: the pid namespace of the daemon, 0 for the machine's first one. */
const volatile __u32 pidns_inum = 0;

/*
 * Each set of hooks on the scheduler has a number, set before loading. Those act whose number is
 * here: so one set takes over from another, of other programs, at one moment.
 */
const volatile __u32 hooks_number = 0;
__u32 hooks_acting = 0;

/* Windows get their number when they are in violation; the daemon sets the first. */
__u64 next_window_id = 1;

/* The daemon's thread group, in the machine's numbers; 0: it is measured like everybody else. */
__u32 own_tgid = 0;

/*
 * The limits, which the daemon may change at any time: of each binding, and of all together; and
 * how far the latter is used up.
 */
struct tlob_limit report_limit = {};
struct tlob_limit overall_limit = {};
__u64 overall_until_ns = 0;

/*
 * Of the ring buffer, so many bytes are for whoever comes first. What is behind them is for all
 * bindings in equal shares: so many records each.
 */
__u64 ring_common = 0;
__u32 ring_share = 0;

/* Records for which the ring buffer had no room, of all bindings. */
__u64 n_lost = 0;

/* Timers that could not be armed: those deadlines are found by the tick, or at the stop. */
__u64 n_timer_failures = 0;

/* Looks of a timer that were in vain, so that it looked again later. */
__u64 n_put_off = 0;

/* Starts that could not arm a timer, because the program that does it for them did not run. */
__u64 n_bridge_failures = 0;

/* Tasks that were found running though no hook had seen them get a CPU. */
__u64 n_missed_switches = 0;

/* Tasks that were no longer asleep, though no hook had seen them wake up. */
__u64 n_missed_wakeups = 0;

/* Places in the lists of waiters that are taken, on all CPUs: of tasks that wait, as a rule. */
__u32 n_waiters = 0;

/* Windows of tasks for which there was no slot. */
__u64 n_tasks_refused = 0;

/*
 * Windows with keys for which there was no room, when the daemon was last woken for that, and, set
 * by it while it makes room, what time it is; 0: it does not.
 */
__u64 n_keyed_refused = 0;
__u64 keyed_refused_ns = 0;
__u64 keyed_stale_ns = 0;

/* Slots that tasks have, of so many. */
__u32 slots_used = 0;
const volatile __u32 slots_max = 0;

/* Tasks with a slot that is only in the hash: see task_new(). */
__u32 n_unstored = 0;

/*
 * The first so many have a timer: the daemon sets it. Others are given away only when all of those
 * are.
 */
__u32 slots_timed = 0;

/* Slots of windows with a key; and what is in unarmed_slots and in untimed_slots. */
__u32 n_keyed = 0;
__u32 n_unarmed = 0;
__u32 n_untimed = 0;

/* The timer that looks at those of the latter is armed. */
__u32 sweep_is_armed = 0;

/* The entries of keyed_processes. */
__u32 n_keyed_processes = 0;

/* Processes with a page; the daemon sets it. */
__u32 n_pages = 0;

/* No slot from here on was ever in use. */
__u32 slots_end = 0;

/*
 * So many hits of a site on one CPU in less time than this are told the daemon (hits_alarm), once
 * until it has looked. 0: never.
 */
__u64 hits_pace_ns = 0;
__u32 hits_alarm = 0;

/* The same of the timers of one binding's budgets. */
__u64 timers_pace_ns = 0;

/*
 * The system calls that are measured. Each pair of programs on system calls has the number of its
 * hooks, and that pair acts whose number is here.
 */
struct tlob_call calls[TLOB_CALL_ROLES][TLOB_CALLS_MAX] = {};
__u32 calls_roles = 0; /* bit mask of those in which any is */
__u32 calls_acting = 0;

/* By the number of a call of 32-bit programs: what it is; TLOB_CALLS_MAX: nothing that is there. */
const volatile __u16 calls_of_32_bits[TLOB_CALLS_MAX] = {};

/*
 * What such a pair costs a system call that nobody measures, with which of these roles; and as
 * hits_pace_ns, of all calls.
 */
__u64 call_price_ns = 0;
__u32 call_price_roles = 0;
__u64 calls_pace_ns = 0;

struct tlob_levels unit_levels = {};

/*
 * Goes up before and after the daemon changes what is measured: a binding that is published, a list
 * of them, a unit that gets a cgroup which was there before. Odd meanwhile. The programs do no such
 * thing: a cgroup that is just made has nobody in it.
 */
__u64 n_changes = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_site);
} start_sites SEC(".maps"), stop_sites SEC(".maps");

/* By the index of the site. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_hits);
} start_hits SEC(".maps"), stop_hits SEC(".maps");

/* The timers that were set for budgets of a binding, by its index. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_hits);
} timer_hits SEC(".maps");

/* All system calls, of whatever kind and whoever makes them, while any is measured. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_hits);
} call_hits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct tlob_scope_key);
	__type(value, struct tlob_scope);
} start_scopes SEC(".maps"), stop_scopes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_unit);
} units SEC(".maps");

/* From the id of a cgroup to the unit that runs in it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u32);
} units_by_cgroup SEC(".maps");

/* From the id of a cgroup to the template that it is an instance of. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u32);
} instances SEC(".maps");

/* From the name of a template to units that its instances can become. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct tlob_unit_path);
	__type(value, struct tlob_spares);
} spares SEC(".maps");

/* From where a cgroup will be made to the unit that it will be. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct tlob_unit_path);
	__type(value, __u32);
} units_by_path SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_binding);
} bindings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_books);
} statistics SEC(".maps");

/* Apart from the counters, because it is the one figure that cannot be reset by subtraction. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} maxima SEC(".maps");

/*
 * In groups of bindings, which the daemon makes as they are needed: for all bindings that there may
 * be, on all CPUs, they would take too much memory.
 */
struct histogram_group {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TLOB_HISTOGRAMS_GROUP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct tlob_histogram));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct histogram_group);
} histograms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_task);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_stack);
} stacks SEC(".maps");

/*
 * The stack of whoever wakes a task on that CPU: interrupts are off then. Not that of the sleeper,
 * which a timer may be looking at.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_stack);
} waker_stacks SEC(".maps");

/*
 * Where a record with a stack is put together, to take no more room in the ring buffer than it
 * needs.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_stack_record);
} stack_records SEC(".maps");

/* The slot of the last task with one that ran on this CPU, plus one; 0: there was none. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} current_slots SEC(".maps");

/*
 * How much CLOCK_MONOTONIC is ahead of the scheduler's clock of this CPU; 0: it is not known. Where
 * the hardware's clocks are not trusted, those of two CPUs can differ by as much as a tick.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} sched_clock_offsets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_cpu);
} cpus SEC(".maps");

/* A stack, so that the slots in use stay close together. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__type(value, __u32);
} free_slots SEC(".maps"), free_untimed_slots SEC(".maps");

/* From a task to its slot: quick, but see task_slot(). */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} slots SEC(".maps");

/* The same, by the address of the task_struct. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u32);
} slots_by_task SEC(".maps");

/* By TLOB_KEY_SIDE(), of bindings whose windows have keys: where these lie. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_key_places);
} key_places SEC(".maps");

/* From the key of an open window to its slot, and to the ticket of that: see keyed.bpf.h. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct tlob_key);
	__type(value, __u64);
} keyed_windows SEC(".maps");

/* The processes that have, or had, windows with a key, by their id as the kernel counts. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u8);
} keyed_processes SEC(".maps");

/* The lanes of processes that have joined, by the index of their page. */
struct page {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TLOB_LANES);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct tlob_lane));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct page);
} pages SEC(".maps");

/* From a process, by its id in the daemon's pid namespace, to the index of its page. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} pages_by_process SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlob_lane_holder);
} lane_holders SEC(".maps");

/*
 * Slots of windows with a key whose timer somebody has to arm, and slots, whoever's, that have no
 * timer. Each is in one of these, once, or in none (queued in its tlob_task), so there is room for
 * all.
 */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, __u32);
} unarmed_slots SEC(".maps"), untimed_slots SEC(".maps");

/*
 * One for each slot. In a map of their own: before Linux 7.0 a uprobe program may not even look
 * into a map with timers. The daemon sets them up (prepare_timers), because that can fail for want
 * of memory.
 */
struct slot_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot_timer);
} timers SEC(".maps");

/* For all slots that have none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot_timer);
} sweep_timer SEC(".maps");

/*
 * Nothing is ever in these: see keep_own_stack(). Programs that are attached in different ways
 * cannot have the same one.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} no_perf_programs SEC(".maps"), no_multi_programs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

/* What is in there, so that it is among the types of this file: see bpf/layout-hash.c. */
const struct tlob_record *type_of_record;
const struct tlob_instance_record *type_of_instance_record;
const struct tlob_process_record *type_of_process_record;

/* Of processes in units that are followed: apart from the others, which may come in floods. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 * 1024);
} process_records SEC(".maps");

/* The processes that were told of, by their id as the kernel counts: their exit is told too. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u8);
} processes SEC(".maps");

/* The processes that were told of because they could unwind, and the epoch in which they were. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} unwinding_processes SEC(".maps");

/* Processes with a probe of their own at a site that has one in all processes too. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct tlob_process_site);
	__type(value, __u8);
} process_sites SEC(".maps");

#endif
