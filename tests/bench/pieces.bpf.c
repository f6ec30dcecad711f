// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a window is made of, one piece in a program, and each many times over: so that a piece of a
 * few nanoseconds is not lost in what a probe costs.
 */
#include "bpf/program/kernel.bpf.h"

#define TIMES 1000
#define ITEMS 256

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 took_ns = 0; /* by all of the pieces together */
__u64 word = 0;

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, ITEMS);
        __type(key, __u32);
        __type(value, __u64);
} array SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, ITEMS);
        __type(key, __u32);
        __type(value, __u64);
} per_cpu SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, ITEMS);
        __type(key, __u32);
        __type(value, __u64);
} hash SEC(".maps");

struct inner {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, ITEMS);
        __uint(key_size, sizeof(__u32));
        __uint(value_size, sizeof(__u64));
};

struct inner inner SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
        __uint(max_entries, 1);
        __type(key, __u32);
        __array(values, struct inner);
} outer SEC(".maps") = {
        .values = { &inner },
};

struct {
        __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __type(key, int);
        __type(value, __u32);
} storage SEC(".maps");

#define PIECE(name, code)                                                                          \
        SEC("uprobe") int name(struct pt_regs *ctx) {                                              \
                struct task_struct *task = bpf_get_current_task_btf();                             \
                __u64 begin = bpf_ktime_get_ns(), x = 0, *v;                                       \
                __u32 i, key = 0;                                                                  \
                (void) task, (void) v, (void) key;                                                 \
                                                                                                   \
                for (i = 0; i < TIMES; i++) {                                                      \
                        barrier_var(x);                                                            \
                        code;                                                                      \
                }                                                                                  \
                took_ns = bpf_ktime_get_ns() - begin;                                              \
                return 0;                                                                          \
        }

static __noinline int called(__u64 x) {
        barrier_var(x);
        return (int) x;
}

#define LOOK_UP(map)                                                                               \
        do {                                                                                       \
                key = i % ITEMS;                                                                   \
                v = bpf_map_lookup_elem(map, &key);                                                \
                if (v)                                                                             \
                        x = READ_ONCE(*v);                                                         \
        } while (0)

PIECE(nothing, )
PIECE(clock, x = bpf_ktime_get_ns())
PIECE(cookie, x = bpf_get_attach_cookie(ctx))
PIECE(call, x = called(x))
PIECE(look_array, LOOK_UP(&array))
PIECE(look_per_cpu, LOOK_UP(&per_cpu))
PIECE(look_hash, LOOK_UP(&hash))
PIECE(look_storage, {
        v = bpf_task_storage_get(&storage, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
        if (v)
                x = READ_ONCE(*(__u32 *) v);
})
PIECE(look_nested, {
        void *map;

        key = 0;
        map = bpf_map_lookup_elem(&outer, &key);
        if (map)
                LOOK_UP(map);
})
PIECE(locked_add, __sync_fetch_and_add(&word, 1))
PIECE(exchange, x = __sync_lock_test_and_set(&word, x))
PIECE(compare, x = __sync_val_compare_and_swap(&word, x, 1))
PIECE(store, WRITE_ONCE(word, x))
PIECE(user_read, bpf_probe_read_user(&x, sizeof(x), (void *) PT_REGS_SP(ctx)))
PIECE(kernel_read, bpf_probe_read_kernel(&x, sizeof(x), task))
PIECE(own_cgroup, x = task->cgroups->dfl_cgrp->kn->id)
PIECE(ancestor, x = bpf_get_current_ancestor_cgroup_id(1))
