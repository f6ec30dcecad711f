// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs that measure. Two kinds, which share one record per task:
 *
 *  - start and stop, attached as uprobes, one probe per site whatever the number of bindings there.
 *    The probe's cookie names the site, (site, cgroup) picks the bindings. A start notes the task's
 *    totals, a stop takes the difference.
 *  - hooks on the scheduler's tracepoints, which add the time since the last change to the total of
 *    the state that the task leaves. They do the same however many windows are open, and return at
 *    once for tasks that never had one.
 *
 * What one would miss: uprobe programs can be preempted at any instruction (only migration is off),
 * and the hooks then run for the very task that is in the middle of a start or stop. So statistics
 * are atomic, and totals are read under a sequence count. Hooks of one task exclude each other: the
 * scheduler calls them under the run-queue lock.
 *
 * Every time is bpf_ktime_get_ns(), CLOCK_MONOTONIC. No state is computed by subtraction from
 * elapsed: the three totals advance by the same clock readings that make up elapsed.
 */
#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "tlob-record.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

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

struct bpf_local_storage;

struct task_struct {
        int pid;
        int tgid;
        struct pid *thread_pid;
        struct task_struct *group_leader;
        struct bpf_local_storage *bpf_storage;
};

#pragma clang attribute pop

#define READ_ONCE(x)     (*(volatile typeof(x) *) &(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *) &(x) = (v))

/*
 * At a return the return address is off the stack on x86, and was never on it elsewhere: what to take
 * from the stack pointer there to get the one that the function was entered with.
 */
#if defined(__TARGET_ARCH_x86)
#define RETURN_ADDRESS_SIZE 8
#else
#define RETURN_ADDRESS_SIZE 0
#endif

/* Set before loading: the pid namespace of the daemon, 0 for the machine's first one. */
const volatile __u32 pidns_inum = 0;

/* Windows get their number when they are in violation; the daemon sets the first. */
__u64 next_window_id = 1;

/* Records for which the ring buffer had no room, of all bindings. */
__u64 n_lost = 0;

/* No slot from here on was ever in use. */
__u32 slots_end = 0;

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct tlob_site);
} start_sites SEC(".maps"), stop_sites SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 1);
        __type(key, struct tlob_scope_key);
        __type(value, struct tlob_scope);
} start_scopes SEC(".maps"), stop_scopes SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct tlob_binding);
} bindings SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct tlob_statistics);
} statistics SEC(".maps");

/* Apart from the counters, because it is the one figure that cannot be reset by subtraction. */
struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, __u64);
} maxima SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_MMAPABLE);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct tlob_task);
} tasks SEC(".maps");

/* A stack, so that the slots in use stay close together. */
struct {
        __uint(type, BPF_MAP_TYPE_STACK);
        __uint(max_entries, 1);
        __type(value, __u32);
} free_slots SEC(".maps");

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

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, 4096);
} records SEC(".maps");

/* The totals of a task at one moment. */
struct snapshot {
        __u64 now;
        __u64 total_ns[TLOB_N_STATES];
};

#define NO_SLOT          (~0U)
#define PIDNS_LEVELS_MAX 32 /* MAX_PID_NS_LEVEL */

/*
 * The slot of a task, or NO_SLOT. Before Linux 6.2 a look into task storage fails while another
 * program on this CPU is inside one, which on a preemptible kernel can last: then the hash tells.
 */
static __always_inline __u32 task_slot(struct task_struct *task) {
        __u64 key = (__u64) task;
        __u32 *slot;

        if (!task->bpf_storage)
                return NO_SLOT;

        slot = bpf_task_storage_get(&slots, task, NULL, 0);
        if (!slot)
                slot = bpf_map_lookup_elem(&slots_by_task, &key);

        return slot ? *slot : NO_SLOT;
}

static __always_inline struct tlob_task *task_at(__u32 slot, struct task_struct *task) {
        struct tlob_task *t;

        if (slot == NO_SLOT)
                return NULL;

        t = bpf_map_lookup_elem(&tasks, &slot);
        return t && t->task == (__u64) task ? t : NULL;
}

static __always_inline struct tlob_task *task_find(struct task_struct *task) {
        return task_at(task_slot(task), task);
}

/* The id of a task as the daemon sees it, 0 if it cannot. */
static __noinline __u32 pid_in_namespace(struct task_struct *task) {
        struct pid *pid = BPF_CORE_READ(task, thread_pid);
        unsigned int i, level = BPF_CORE_READ(pid, level);
        void *upid = __builtin_preserve_access_index(&pid->numbers[0]);

        for (i = 0; i < PIDNS_LEVELS_MAX && i <= level; i++) {
                struct upid *u = upid + i * bpf_core_type_size(struct upid);

                if (BPF_CORE_READ(u, ns, ns.inum) == pidns_inum)
                        return BPF_CORE_READ(u, nr);
        }
        return 0;
}

static __always_inline void slots_grow(__u32 slot) {
        __u32 old = READ_ONCE(slots_end);
        int i;

        for (i = 0; i < 8 && old <= slot; i++)
                old = __sync_val_compare_and_swap(&slots_end, old, slot + 1);
}

/* Gives the current task a slot. The hooks see it from the moment that it is in the storage. */
static __noinline __u32 task_new(void) {
        struct task_struct *task = bpf_get_current_task_btf();
        __u64 key = (__u64) task;
        struct tlob_task *t;
        __u32 slot;

        if (bpf_map_pop_elem(&free_slots, &slot))
                return NO_SLOT;
        t = bpf_map_lookup_elem(&tasks, &slot);
        if (!t)
                return NO_SLOT;

        slots_grow(slot);

        t->task = key;
        t->tid = pidns_inum ? pid_in_namespace(task) : task->pid;
        t->pid = pidns_inum ? pid_in_namespace(task->group_leader) : task->tgid;
        t->state = TLOB_RUNNING;
        t->last_ns = bpf_ktime_get_ns();

        if (bpf_map_update_elem(&slots_by_task, &key, &slot, BPF_ANY))
                goto fail;
        if (!bpf_task_storage_get(&slots, task, &slot, BPF_LOCAL_STORAGE_GET_F_CREATE))
                goto fail_hash;
        return slot;

fail_hash:
        bpf_map_delete_elem(&slots_by_task, &key);
fail:
        t->task = 0;
        bpf_map_push_elem(&free_slots, &slot, 0);
        return NO_SLOT;
}

/* Takes the slot of the current task away; its windows must have ended. */
static __always_inline void task_free(struct task_struct *task, struct tlob_task *t, __u32 slot) {
        __u64 key = (__u64) task;

        WRITE_ONCE(t->task, 0);
        bpf_map_delete_elem(&slots_by_task, &key);
        bpf_task_storage_delete(&slots, task);
        bpf_map_push_elem(&free_slots, &slot, 0);
}

/* Credits the time since the last change to the state that ends, and enters the next one. */
static __always_inline void task_account(struct tlob_task *t, __u32 next, __u64 now) {
        __u32 state = t->state;

        if (state >= TLOB_N_STATES)
                return;

        WRITE_ONCE(t->sequence, t->sequence + 1);
        barrier();
        /* The clock may step back between CPUs. */
        if (now > t->last_ns) {
                t->total_ns[state] += now - t->last_ns;
                t->last_ns = now;
        }
        t->state = next;
        barrier();
        WRITE_ONCE(t->sequence, t->sequence + 1);
}

/* For the current task: repeated when a hook came in between, so as good as atomic. */
static __always_inline void task_snapshot(struct tlob_task *t, struct snapshot *ret) {
        __u64 sequence, last;
        int i;

        for (i = 0; i < 16; i++) {
                sequence = READ_ONCE(t->sequence);
                ret->now = bpf_ktime_get_ns();
                last = READ_ONCE(t->last_ns);
                if (ret->now < last)
                        ret->now = last;
                ret->total_ns[TLOB_RUNNING] =
                        READ_ONCE(t->total_ns[TLOB_RUNNING]) + ret->now - last;
                ret->total_ns[TLOB_WAITING] = READ_ONCE(t->total_ns[TLOB_WAITING]);
                ret->total_ns[TLOB_SLEEPING] = READ_ONCE(t->total_ns[TLOB_SLEEPING]);
                if (READ_ONCE(t->sequence) == sequence)
                        return;
        }
}

#define count(field) __sync_fetch_and_add(&(field), 1)

static __always_inline void count_maximum(__u32 binding, __u64 elapsed) {
        __u64 *max = bpf_map_lookup_elem(&maxima, &binding);
        __u64 old, seen;
        int i;

        if (!max)
                return;

        old = READ_ONCE(*max);
        for (i = 0; i < 8 && elapsed > old; i++) {
                seen = __sync_val_compare_and_swap(max, old, elapsed);
                if (seen == old)
                        return;
                old = seen;
        }
}

/* What is known of a window at the moment of a report. */
struct verdict {
        __u64 elapsed_ns;
        __u64 spent_ns[TLOB_N_STATES];
        __u32 budget;
        __u32 exceeded;
        __u64 late_ns;
};

static __always_inline void judge_one(struct verdict *v, const struct tlob_binding *b,
                                      enum tlob_budget budget, __u64 value) {
        if (value <= b->budget_ns[budget])
                return;
        if (!v->exceeded) {
                v->budget = budget;
                v->late_ns = value - b->budget_ns[budget];
        }
        v->exceeded |= 1 << budget;
}

/* Compares a window with its budgets. The first one broken, in their order, is the one named. */
static __always_inline void judge(struct verdict *v, const struct tlob_binding *b) {
        judge_one(v, b, TLOB_BUDGET_TOTAL, v->elapsed_ns);
        judge_one(v, b, TLOB_BUDGET_RUNNING, v->spent_ns[TLOB_RUNNING]);
        judge_one(v, b, TLOB_BUDGET_WAITING, v->spent_ns[TLOB_WAITING]);
        judge_one(v, b, TLOB_BUDGET_SLEEPING, v->spent_ns[TLOB_SLEEPING]);
}

static __always_inline void report(struct tlob_statistics *stats, const struct tlob_task *t,
                                   const struct tlob_window *w, const struct verdict *v, __u64 now,
                                   __u32 type, __u32 end) {
        struct tlob_record *r;

        r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
        if (!r) {
                count(stats->lost);
                count(n_lost);
                return;
        }

        r->type = type;
        r->binding = w->binding;
        r->binding_generation = w->generation;
        r->id = w->id;
        r->time_ns = now;
        r->elapsed_ns = v->elapsed_ns;
        r->spent_ns[TLOB_RUNNING] = v->spent_ns[TLOB_RUNNING];
        r->spent_ns[TLOB_WAITING] = v->spent_ns[TLOB_WAITING];
        r->spent_ns[TLOB_SLEEPING] = v->spent_ns[TLOB_SLEEPING];
        r->cgroup_id = bpf_get_current_cgroup_id();
        r->late_ns = v->late_ns;
        r->budget = v->budget;
        r->exceeded = v->exceeded;
        r->state = TLOB_RUNNING;
        r->end = end;
        r->tid = t->tid;
        r->pid = t->pid;
        bpf_get_current_comm(r->comm, sizeof(r->comm));
        bpf_ringbuf_submit(r, 0);
}

static __always_inline void count_end(struct tlob_statistics *stats, __u32 end, bool violated) {
        if (end == TLOB_END_STOP) {
                if (violated)
                        count(stats->violated);
                else
                        count(stats->in_budget);
        } else if (end < TLOB_N_ENDS) {
                count(stats->ended[end]);
        }
}

/*
 * Ends an open window of the current task: books, and the reports that it owes. The daemon may be ending the same
 * window because its binding is being removed: the compare-and-swap decides who does.
 */
static __always_inline void window_end(struct tlob_task *t, struct tlob_window *w,
                                       const struct snapshot *at, __u32 end) {
        struct tlob_window window = *w;
        struct tlob_statistics *stats;
        struct tlob_binding *b;
        struct verdict v = {};
        int i;

        if (!window.generation || window.generation == TLOB_GENERATION_BUSY)
                return;
        if (__sync_val_compare_and_swap(&w->generation, window.generation, 0) != window.generation)
                return;

        b = bpf_map_lookup_elem(&bindings, &window.binding);
        stats = bpf_map_lookup_elem(&statistics, &window.binding);
        if (!b || !stats)
                return;

        v.elapsed_ns = at->now - window.start_ns;
#pragma unroll
        for (i = 0; i < TLOB_N_STATES; i++) {
                v.spent_ns[i] = at->total_ns[i] - window.base_ns[i];
                if (v.spent_ns[i])
                        __sync_fetch_and_add(&stats->spent_ns[i], v.spent_ns[i]);
        }
        judge(&v, b);
        count_maximum(window.binding, v.elapsed_ns);
        count_end(stats, end, v.exceeded);
        if (!v.exceeded)
                return;

        count(stats->violations);
        window.id = __sync_fetch_and_add(&next_window_id, 1);
        report(stats, t, &window, &v, at->now, TLOB_RECORD_VIOLATION, end);
        report(stats, t, &window, &v, at->now, TLOB_RECORD_COMPLETION, end);
}

/* The open window of that generation, else NULL; *ret_free is a free place, if there is one. */
static __always_inline struct tlob_window *window_find(struct tlob_task *t, __u64 generation,
                                                       struct tlob_window **ret_free) {
        struct tlob_window *w = NULL, *unused = NULL;
        int i;

#pragma unroll
        for (i = TLOB_WINDOWS_MAX - 1; i >= 0; i--) {
                __u64 g = READ_ONCE(t->windows[i].generation);

                if (g == generation)
                        w = &t->windows[i];
                else if (!g)
                        unused = &t->windows[i];
        }
        *ret_free = unused;
        return w;
}

static __always_inline void window_open(struct tlob_task *t, struct tlob_window *w, __u32 binding,
                                        __u64 generation, __u64 stack_pointer) {
        struct snapshot at;

        w->binding = binding;
        w->stack_pointer = stack_pointer;
        w->exceeded = 0;
        w->id = 0;
        /* Last, so that the window begins when the code that it measures goes on. */
        task_snapshot(t, &at);
        w->base_ns[TLOB_RUNNING] = at.total_ns[TLOB_RUNNING];
        w->base_ns[TLOB_WAITING] = at.total_ns[TLOB_WAITING];
        w->base_ns[TLOB_SLEEPING] = at.total_ns[TLOB_SLEEPING];
        w->start_ns = at.now;
        WRITE_ONCE(w->generation, generation);
}

/*
 * A start of one binding. Global, so that the verifier looks at it once and not for every way
 * that leads here; slot may be NO_SLOT.
 */
__noinline int binding_start(__u32 slot, __u32 binding, __u64 stack_pointer) {
        struct tlob_statistics *stats = bpf_map_lookup_elem(&statistics, &binding);
        struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &binding);
        struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
        struct tlob_window *w, *unused = NULL;
        struct snapshot at;
        __u64 generation;

        if (!b || !stats)
                return 0;
        generation = READ_ONCE(b->generation);
        if (!generation)
                return 0;

        w = t ? window_find(t, generation, &unused) : NULL;
        if (w && b->stop_is_return && stack_pointer >= w->stack_pointer) {
                /* The frame of the open window is gone, and no return told. */
                task_snapshot(t, &at);
                window_end(t, w, &at, TLOB_END_ABANDONED);
                unused = w;
        } else if (w) {
                count(stats->nested);
                return 0;
        }

        count(stats->starts);
        if (!t || !unused)
                count(stats->over_limit);
        else
                window_open(t, unused, binding, generation, stack_pointer);
        return 0;
}

/* A stop of one binding, at the moment "at"; slot may be NO_SLOT. */
__noinline int binding_stop(__u32 slot, __u32 binding, __u64 stack_pointer,
                            const struct snapshot *at) {
        struct tlob_statistics *stats = bpf_map_lookup_elem(&statistics, &binding);
        struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &binding);
        struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
        struct tlob_window *w, *unused;
        __u64 generation;

        if (!b || !stats || !at)
                return 0;
        generation = READ_ONCE(b->generation);
        if (!generation)
                return 0;

        w = t ? window_find(t, generation, &unused) : NULL;
        if (!w) {
                count(stats->unmatched);
                return 0;
        }
        /* The return of an inner call: its frame lies below that of the window. */
        if (b->stop_is_return && stack_pointer - RETURN_ADDRESS_SIZE < w->stack_pointer)
                return 0;

        window_end(t, w, at, TLOB_END_STOP);
        return 0;
}

/* The bindings of a site for the current task's cgroup at one depth. */
static __always_inline struct tlob_scope *scope_find(void *scopes, __u32 site, __u32 level) {
        struct tlob_scope_key key = { .site = site };

        if (level != TLOB_LEVEL_UNCONFINED) {
                key.cgroup_id = bpf_get_current_ancestor_cgroup_id(level);
                if (!key.cgroup_id)
                        return NULL;
        }
        return bpf_map_lookup_elem(scopes, &key);
}

static __always_inline struct tlob_site *site_find(void *sites, __u64 cookie) {
        __u32 index = (__u32) cookie;
        struct tlob_site *site = bpf_map_lookup_elem(sites, &index);

        return site && site->generation == cookie >> 32 ? site : NULL;
}

static __always_inline int on_start(struct pt_regs *ctx) {
        __u64 cookie = bpf_get_attach_cookie(ctx);
        struct tlob_site *site = site_find(&start_sites, cookie);
        __u32 slot = NO_SLOT, i, j;

        if (!site)
                return 0;

        for (i = 0; i < TLOB_LEVELS_MAX && i < site->n_levels; i++) {
                struct tlob_scope *scope =
                        scope_find(&start_scopes, (__u32) cookie, site->level[i]);

                if (!scope)
                        continue;
                if (slot == NO_SLOT)
                        slot = task_slot(bpf_get_current_task_btf());
                if (slot == NO_SLOT)
                        slot = task_new();
                for (j = 0; j < TLOB_SCOPE_MAX && j < scope->n; j++)
                        binding_start(slot, scope->binding[j], PT_REGS_SP(ctx));
        }
        return 0;
}

static __always_inline int on_stop(struct pt_regs *ctx) {
        struct task_struct *task = bpf_get_current_task_btf();
        __u32 slot = task_slot(task), i, j;
        struct tlob_task *t = task_at(slot, task);
        struct snapshot at = {};
        struct tlob_site *site;
        __u64 cookie;

        /* First, so that the window ends when the code that it measures does. */
        if (t)
                task_snapshot(t, &at);

        cookie = bpf_get_attach_cookie(ctx);
        site = site_find(&stop_sites, cookie);
        if (!site)
                return 0;

        for (i = 0; i < TLOB_LEVELS_MAX && i < site->n_levels; i++) {
                struct tlob_scope *scope = scope_find(&stop_scopes, (__u32) cookie, site->level[i]);

                if (!scope)
                        continue;
                for (j = 0; j < TLOB_SCOPE_MAX && j < scope->n; j++)
                        binding_stop(slot, scope->binding[j], PT_REGS_SP(ctx), &at);
        }
        return 0;
}

SEC("uprobe")
int start_perf(struct pt_regs *ctx) {
        return on_start(ctx);
}

SEC("uprobe")
int stop_perf(struct pt_regs *ctx) {
        return on_stop(ctx);
}

/* The same for uprobe_multi links (Linux 6.6), which want programs of another attach type. */
SEC("uprobe")
int start_multi(struct pt_regs *ctx) {
        return on_start(ctx);
}

SEC("uprobe")
int stop_multi(struct pt_regs *ctx) {
        return on_stop(ctx);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
             unsigned int prev_state) {
        struct tlob_task *out = task_find(prev), *in = task_find(next);
        __u64 now;

        if (!out && !in)
                return 0;

        now = bpf_ktime_get_ns();
        if (out)
                task_account(out, preempt || !prev_state ? TLOB_WAITING : TLOB_SLEEPING, now);
        if (in)
                task_account(in, TLOB_RUNNING, now);
        return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task) {
        struct tlob_task *t = task_find(task);

        /* A task that has not gone to sleep yet can be woken too: that changes nothing. */
        if (t && t->state == TLOB_SLEEPING)
                task_account(t, TLOB_WAITING, bpf_ktime_get_ns());
        return 0;
}

static __always_inline int end_task(__u32 end) {
        struct task_struct *task = bpf_get_current_task_btf();
        __u32 slot = task_slot(task);
        struct tlob_task *t = task_at(slot, task);
        struct snapshot at = {};
        int i;

        if (!t)
                return 0;

        task_snapshot(t, &at);
        for (i = 0; i < TLOB_WINDOWS_MAX; i++)
                window_end(t, &t->windows[i], &at, end);
        task_free(task, t, slot);
        return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task) {
        return end_task(TLOB_END_EXIT);
}

/* Its thread id may change too, so the task begins anew. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task) {
        return end_task(TLOB_END_EXEC);
}

/*
 * Run once by the daemon, on itself: how deep in the cgroup tree the cgroup of that id lies, which is the
 * root of the daemon's cgroup namespace. In a container the depths that it sees start there.
 */
SEC("syscall")
int find_root_level(struct tlob_root *root) {
        __u32 level;

        for (level = 0; level < 64; level++)
                if (bpf_get_current_ancestor_cgroup_id(level) == root->cgroup_id) {
                        root->level = level;
                        root->found = 1;
                        break;
                }
        return 0;
}
