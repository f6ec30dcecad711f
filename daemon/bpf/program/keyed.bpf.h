/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_KEYED_BPF_H
#define BPF_PROGRAM_KEYED_BPF_H

#include "bpf/program/deadline.bpf.h"
#include "bpf/program/site.bpf.h"

/*
 * Windows with a key: a value that the program has at hand where they begin and where they end,
 * such as the address of a request. Another thread than the one that began it may end such a
 * window, so it is no task's: it has a slot for itself, and of its time only the length is known.
 *
 * keyed_windows leads from the key to the slot. Two threads can find the same one, and somebody
 * else may have it when the second comes to end it: so each window in a slot has a ticket, which is
 * swapped for 0. Whoever has done that ends the window, takes the key out, and gives the slot back;
 * and until that is done no other window of this key begins, if the program puts its own begins and
 * ends in order.
 *
 * A begin that finds its key in use has most likely the address of an object whose end was never
 * passed, and was freed: the former window is abandoned then.
 */

/* A share of all slots; what is left is for tasks. And one of these for each binding. */
#define KEYED_SLOTS_MAX	   (slots_max / 2)
#define KEYED_OF_ONE_MAX   (slots_max / TLOB_KEYED_SHARE)
#define KEYED_TICKET_SHIFT 32

/* Where it is among the registers, as that machine shows them to programs. */
#define INSTRUCTION_POINTER offsetof(typeof(*__PT_REGS_CAST((struct pt_regs *)NULL)), __PT_IP_REG)

static __always_inline __u64 register_read(__u64 registers, __u16 where)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)registers + where);
	return value;
}

/* From that many bytes to all eight. */
static __always_inline __u64 argument_extend(const struct tlob_argument *a, __u64 value)
{
	__u32 shift = 64 - 8 * (a->size & 15);

	if (!a->size || shift > 56)
		return value;
	value <<= shift;
	return a->is_signed ? (__u64)((__s64)value >> shift) : value >> shift;
}

static __always_inline bool argument_read(const struct tlob_argument *a, __u64 registers,
					  __u64 *ret)
{
	__u64 value = a->value, address;
	__u32 size = a->size & 15;

	if (a->kind == TLOB_ARGUMENT_REGISTER)
		value = register_read(registers, a->base);
	if (a->kind == TLOB_ARGUMENT_MEMORY) {
		address = register_read(registers, a->base) + a->value;
		if (a->scale)
			address += register_read(registers, a->index) * a->scale;
		value = 0;
		if (size > sizeof(value) || bpf_probe_read_user(&value, size, (void *)address))
			return false;
	}
	*ret = argument_extend(a, value);
	return true;
}

/*
 * The key of a hit in the current task, at a side of that binding. Returns whether it could be
 * read. Global, as window_end().
 */
__noinline int key_read(__u32 binding, __u32 side, struct tlob_key *ret)
{
	__u64 registers = bpf_task_pt_regs(bpf_get_current_task_btf());
	__u64 instruction = register_read(registers, INSTRUCTION_POINTER);
	__u32 index = TLOB_KEY_SIDE(binding, side), i = 0;
	struct tlob_key_places *places;

	places = bpf_map_lookup_elem(&key_places, &index);
	if (!places || !ret)
		return 0;
	ret->tgid = bpf_get_current_pid_tgid() >> 32;
	ret->binding = binding;
	if (places->n > 1)
		while (i < TLOB_KEY_PLACES_MAX &&
		       places->places[i].page_offset != TLOB_PAGE_OFFSET(instruction))
			i++;
	i = unlearned(ret->value, i);
	return i < TLOB_KEY_PLACES_MAX && i < places->n &&
	       argument_read(&places->places[i], registers, &ret->value);
}

/* The window of a key, if it is open, for whoever ends it; NO_SLOT: there is none, or no longer. */
static __always_inline __u32 keyed_take(const struct tlob_key *key)
{
	__u64 *found = bpf_map_lookup_elem(&keyed_windows, key);
	struct tlob_task *t;
	__u64 ticket;
	__u32 slot;

	if (!found)
		return NO_SLOT;
	ticket = READ_ONCE(*found);
	slot = (__u32)ticket;
	t = bpf_map_lookup_elem(&tasks, &slot);
	/* The entry may have become another's while it was read. */
	if (!t || t->task != TLOB_TASK_OF_KEY || t->keyed.key.value != key->value ||
	    t->keyed.key.tgid != key->tgid || t->keyed.key.binding != key->binding)
		return NO_SLOT;
	return __sync_val_compare_and_swap(&t->keyed.ticket, ticket, 0) == ticket ? slot : NO_SLOT;
}

/* For whoever has taken it, once its window has ended. */
static __always_inline void keyed_free(struct tlob_task *t, __u32 slot)
{
	struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &t->keyed.key.binding);
	__u64 *found = bpf_map_lookup_elem(&keyed_windows, &t->keyed.key);

	/* It is not there yet if another one was. */
	if (found && (__u32)*found == slot)
		bpf_map_delete_elem(&keyed_windows, &t->keyed.key);
	task_forget_deadlines(t);
	WRITE_ONCE(t->task, 0);
	/* Another binding may have its index by now. */
	if (b && READ_ONCE(b->generation) == window_at(t, 0)->generation)
		__sync_fetch_and_add(&b->n_keyed, -1);
	__sync_fetch_and_add(&n_keyed, -1);
	__sync_fetch_and_add(&slots_used, -1);
	slot_push(slot);
}

/*
 * The same as task_ending() of a task: no timer may find the window over a budget that it has kept.
 */
static __always_inline void keyed_ending(struct tlob_task *t, struct snapshot *ret)
{
	/* A full barrier. */
	__sync_lock_test_and_set(&t->ending, 1);
	ret->now = bpf_ktime_get_ns();
	if (ret->now < t->last_ns)
		ret->now = t->last_ns;
	ret->total_ns[TLOB_RUNNING] = t->total_ns[TLOB_RUNNING];
	ret->total_ns[TLOB_WAITING] = t->total_ns[TLOB_WAITING];
	ret->total_ns[TLOB_SLEEPING] = t->total_ns[TLOB_SLEEPING];
	ret->n_sleeps = 0;
}

/* Ends the window in a slot that was taken. Global, as window_end(). */
__noinline int keyed_end(__u32 slot, __u32 end)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct snapshot at = {};

	if (!t)
		return 0;
	keyed_ending(t, &at);
	if (end == TLOB_END_ABANDONED)
		window_abandon(slot, 0, &at);
	else
		window_end(slot, 0, &at, end);
	task_ended(t);
	keyed_free(t, slot);
	return 0;
}

/* Is what the process leaves open looked for when it exits? */
static __always_inline bool keyed_process_note(__u32 tgid)
{
	__u8 known = 1;

	if (bpf_map_lookup_elem(&keyed_processes, &tgid))
		return true;
	if (!bpf_map_update_elem(&keyed_processes, &tgid, &known, BPF_NOEXIST))
		__sync_fetch_and_add(&n_keyed_processes, 1);
	return bpf_map_lookup_elem(&keyed_processes, &tgid);
}

/* There is no room for one more: the daemon looks for some, now and then. */
static __always_inline void keyed_refuse(void)
{
	__u64 now = bpf_ktime_get_ns(), last = READ_ONCE(keyed_refused_ns);
	__u32 type = TLOB_RECORD_NOTICE;

	__sync_fetch_and_add(&n_keyed_refused, 1);
	if ((!last || now - last >= TLOB_STALE_NS) &&
	    __sync_val_compare_and_swap(&keyed_refused_ns, last, now) == last)
		bpf_ringbuf_output(&records, &type, sizeof(type), 0);
}

/* A slot for one more; NO_SLOT: there is none. */
static __always_inline __u32 keyed_new(struct tlob_binding *b, const struct tlob_key *key)
{
	__u32 slot;

	if (!keyed_process_note(key->tgid))
		return NO_SLOT;
	if (READ_ONCE(b->n_keyed) >= KEYED_OF_ONE_MAX || READ_ONCE(n_keyed) >= KEYED_SLOTS_MAX) {
		keyed_refuse();
		return NO_SLOT;
	}
	if (!slot_pop(&slot)) {
		tasks_refuse();
		return NO_SLOT;
	}
	slots_grow(slot);
	__sync_fetch_and_add(&b->n_keyed, 1);
	__sync_fetch_and_add(&n_keyed, 1);
	__sync_fetch_and_add(&slots_used, 1);
	return slot;
}

static __always_inline void keyed_open(struct tlob_task *t, const struct tlob_binding *b,
				       const struct tlob_key *key, __u64 generation, __u64 cookie)
{
	struct next next = { TLOB_NEVER, { TLOB_NEVER, TLOB_NEVER, TLOB_NEVER } };
	struct task_struct *task = bpf_get_current_task_btf();
	struct tlob_window *w = window_at(t, 0);

	t->keyed.key = *key;
	t->keyed.ticket = 0;
	t->keyed.cookie = cookie;
	t->keyed.is_told = 0;
	t->keyed.cgroup_id = task->cgroups->dfl_cgrp->kn->id;
	BPF_CORE_READ_INTO(&t->keyed.comm, task, comm);
	t->state = TLOB_N_STATES;
	t->n_sleeps = t->over_sleep = t->woken_by.time_ns = 0;
	t->elsewhere = t->calls = 0;
	t->lowest_frame = TLOB_NEVER;
	task_forget_deadlines(t);
	t->timer_binding = key->binding;
	w->generation = generation;
	w->binding = key->binding;
	w->frame = w->call = w->over_sleep = w->base_stolen_ns = 0;
	w->base_ns[TLOB_RUNNING] = t->total_ns[TLOB_RUNNING];
	w->base_ns[TLOB_WAITING] = t->total_ns[TLOB_WAITING];
	w->base_ns[TLOB_SLEEPING] = t->total_ns[TLOB_SLEEPING];
	w->passed_ns[TLOB_RUNNING] = w->passed_ns[TLOB_WAITING] = w->passed_ns[TLOB_SLEEPING] = 0;
	w->start_ns = t->last_ns = bpf_ktime_get_ns();
	ordered(&t->sequence);
	WRITE_ONCE(w->claim, TLOB_CLAIM_OPEN(w->start_ns));
	WRITE_ONCE(t->task, TLOB_TASK_OF_KEY);
	ordered(&t->sequence);
	WRITE_ONCE(*open_at(t, 0), generation);
	add_fully(&t->n_opens, 1);
	next_add(&next, w, b);
	next_lower(t, &next);
}

/*
 * The slot of the window that a hit ends, or that is in the way of the one that it begins, for
 * whoever ends it; NO_SLOT: there is none. Global, as window_end(), and so are the next two: calls
 * that are not in each other have the more room on the stack.
 */
__noinline __u32 keyed_find(__u32 binding, __u32 side)
{
	struct tlob_key key = {};

	return key_read(binding, side, &key) ? keyed_take(&key) : NO_SLOT;
}

/*
 * While two daemons have probes there, each start is told twice, by each of them. Is this the
 * second time?
 */
__noinline int keyed_is_told(__u32 binding, __u64 cookie)
{
	struct tlob_key key = {};
	struct tlob_task *t;
	__u64 *found;
	__u32 slot;

	if (!key_read(binding, SIDE_START, &key))
		return 0;
	found = bpf_map_lookup_elem(&keyed_windows, &key);
	slot = found ? (__u32)*found : NO_SLOT;
	t = bpf_map_lookup_elem(&tasks, &slot);
	return t && t->task == TLOB_TASK_OF_KEY && t->keyed.cookie != cookie &&
	       __sync_val_compare_and_swap(&t->keyed.is_told, 0, 1) == 0;
}

/* Begins a window. Returns NO_SLOT, or if that did not succeed, the slot that is to be let go. */
__noinline __u32 keyed_begin(__u32 binding, __u64 cookie)
{
	struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &binding);
	struct tlob_books *stats = bpf_map_lookup_elem(&statistics, &binding);
	struct tlob_key key = {};
	struct tlob_task *t = NULL;
	__u64 generation, ticket;
	__u32 slot;

	if (!b || !stats)
		return NO_SLOT;
	generation = READ_ONCE(b->generation);
	if (!generation)
		return NO_SLOT;
	count(stats->starts);
	if (key_read(binding, SIDE_START, &key)) {
		slot = keyed_new(b, &key);
		t = bpf_map_lookup_elem(&tasks, &slot);
	}
	if (!t) {
		count(stats->over_limit);
		return NO_SLOT;
	}
	task_note_ids(slot);
	keyed_open(t, b, &key, generation, cookie);
	ticket = t->n_opens << KEYED_TICKET_SHIFT | slot;
	/*
	 * Another thread begins it at this moment, or there is no memory; or the binding was
	 * removed meanwhile, and nobody has seen the window.
	 */
	if (bpf_map_update_elem(&keyed_windows, &key, &ticket, BPF_NOEXIST) ||
	    READ_ONCE(b->generation) != generation)
		return slot;
	WRITE_ONCE(t->keyed.ticket, ticket);
	slot_leave(t, slot);
	return NO_SLOT;
}

/* Is that a begin which nobody has told of yet, of a task that is measured? Global, as above. */
__noinline int keyed_begins(__u32 binding, __u64 cookie)
{
	struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &binding);

	return b && !task_is_ours() &&
	       !(READ_ONCE(b->start_cookie_before) && keyed_is_told(binding, cookie));
}

/* There was no window to be ended. Global, as above. */
__noinline int keyed_unmatched(__u32 binding)
{
	struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &binding);
	struct tlob_books *stats = bpf_map_lookup_elem(&statistics, &binding);

	if (b && stats && !READ_ONCE(b->start_cookie_before) && !task_is_ours())
		count(stats->unmatched);
	return 0;
}

static __always_inline void keyed_start(__u32 binding, __u64 cookie)
{
	__u32 slot;

	if (!keyed_begins(binding, cookie))
		return;
	slot = keyed_find(binding, SIDE_START);
	if (slot != NO_SLOT)
		keyed_end(slot, TLOB_END_ABANDONED);
	slot = keyed_begin(binding, cookie);
	if (slot != NO_SLOT)
		keyed_end(slot, TLOB_END_ABANDONED);
}

static __always_inline void keyed_stop(__u32 binding)
{
	__u32 slot = keyed_find(binding, SIDE_STOP);

	if (slot != NO_SLOT)
		keyed_end(slot, TLOB_END_STOP);
	else
		keyed_unmatched(binding);
}

/* A hit is for that binding: what is to be done is done by keyed_hit(). */
static __always_inline void keyed_note(struct hit *hit, __u32 binding)
{
	if (hit->n_keyed == hit->keyed_done)
		hit->binding = binding;
	hit->n_keyed++;
}

/*
 * Returns whether there are more than the one that was noted: then the bindings of the site have to
 * be gone over again.
 */
static __always_inline bool keyed_hit(struct hit *hit, enum side side)
{
	bool more = hit->n_keyed > hit->keyed_done + 1;

	if (hit->n_keyed <= hit->keyed_done)
		return false;
	hit->keyed_done++;
	hit->n_keyed = 0;
	if (side == SIDE_START)
		keyed_start(hit->binding, hit->cookie);
	else
		keyed_stop(hit->binding);
	return more;
}

/* Of a window that is open. */
static __always_inline bool keyed_is_stale(struct tlob_task *t)
{
	const struct tlob_window *w = window_at(t, 0);
	__u64 age = READ_ONCE(keyed_stale_ns) - READ_ONCE(w->start_ns);
	struct tlob_binding *b;
	__u64 budget;

	if (!READ_ONCE(keyed_stale_ns) || (__s64)age < (__s64)TLOB_STALE_NS)
		return false;
	b = bpf_map_lookup_elem(&bindings, &t->keyed.key.binding);
	budget = b ? READ_ONCE(b->budget_ns[TLOB_BUDGET_TOTAL]) : 0;
	if (budget != TLOB_NEVER && !TLOB_CLAIM_IS_VIOLATED(READ_ONCE(w->claim)))
		return false;
	return age >= TLOB_STALE_ANYHOW_NS || age / TLOB_STALE_BUDGETS >= budget;
}

struct keyed_sweep {
	__u32 tgid; /* 0: as tend_keyed() */
	__u32 end;
};

static long keyed_sweep_slot(__u32 slot, void *context)
{
	const struct keyed_sweep *sweep = context;
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	__u32 end = sweep->end;
	__u64 ticket;

	if (!t)
		return 0;
	/* First: what is found out then is of the window that has it, or it is of no use. */
	ticket = READ_ONCE(t->keyed.ticket);
	ordered(&t->sequence);
	if (READ_ONCE(t->task) != TLOB_TASK_OF_KEY)
		return 0;
	if (sweep->tgid && t->keyed.key.tgid != sweep->tgid)
		return 0;
	if (!sweep->tgid && READ_ONCE(*open_at(t, 0))) {
		if (READ_ONCE(t->next_ns) == 0)
			slot_leave(t, slot);
		if (!keyed_is_stale(t))
			return 0;
		end = TLOB_END_ABANDONED;
	}
	if (ticket && __sync_val_compare_and_swap(&t->keyed.ticket, ticket, 0) == ticket)
		keyed_end(slot, end);
	return 0;
}

/* The current process ends, or becomes another program: what it had open does too. */
static __always_inline void keyed_end_process(__u32 end)
{
	struct keyed_sweep sweep = { .tgid = bpf_get_current_pid_tgid() >> 32, .end = end };

	if (!READ_ONCE(n_keyed_processes) || bpf_map_delete_elem(&keyed_processes, &sweep.tgid))
		return;
	__sync_fetch_and_add(&n_keyed_processes, -1);
	if (READ_ONCE(n_keyed))
		bpf_loop(READ_ONCE(slots_end), keyed_sweep_slot, &sweep, 0);
}

/*
 * Run by the daemon, on itself, when it has ended windows with a key, or their budgets have
 * changed, or there is no room: lets the slots of the first go, has the second looked at, and
 * abandons those that are stale (keyed_stale_ns). An iterator, because a program that may sleep
 * cannot use stacks and queues on Linux 6.1.
 */
SEC("iter/task")
int tend_keyed(struct bpf_iter__task *ctx)
{
	struct keyed_sweep sweep = { .end = TLOB_END_REMOVED };

	if (ctx->task)
		bpf_loop(READ_ONCE(slots_end), keyed_sweep_slot, &sweep, 0);
	return 0;
}

#endif
