/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The verifier looks at what is in the maps of a program before it looks at the program: so a map
 * with a timer in it, which it knows by the types that come with the map, and a program that names
 * the map is all that is needed. To find out with our own programs takes a thousand times as long.
 */

#include "bpf/uprobe-timers.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>

#include "base/cleanup.h"
#include "bpf/opts.h"

#define TIMER_SIZE sizeof(struct bpf_timer)

/* struct slot { struct bpf_timer timer; } by unsigned int */
static int add_types(struct btf *btf, struct bpf_map_create_opts *opts) {
        int key, timer, value, r;

        key = btf__add_int(btf, "unsigned int", sizeof(uint32_t), 0);
        timer = btf__add_struct(btf, "bpf_timer", TIMER_SIZE);
        value = btf__add_struct(btf, "slot", TIMER_SIZE);
        r = btf__add_field(btf, "timer", timer, 0, 0);
        if (key < 0 || timer < 0 || value < 0 || r < 0)
                return -ENOMEM;
        opts->btf_key_type_id = (uint32_t) key;
        opts->btf_value_type_id = (uint32_t) value;
        return btf__load_into_kernel(btf);
}

/* A descriptor or a negative errno. */
static int make_map(void) {
        struct btf *btf = btf__new_empty();
        struct bpf_map_create_opts opts;
        int r = -ENOMEM;

        opts_init(&opts);
        if (btf)
                r = add_types(btf, &opts);
        if (r >= 0) {
                opts.btf_fd = (uint32_t) btf__fd(btf);
                r = bpf_map_create(BPF_MAP_TYPE_ARRAY, "slot", sizeof(uint32_t), TIMER_SIZE, 1,
                                   &opts);
        }
        btf__free(btf);
        return r;
}

bool uprobe_timers_are_allowed(void) {
        _cleanup_close_ int map_fd = make_map(), prog_fd = -EBADF;
        const struct bpf_insn insns[] = {
                { .code = BPF_LD | BPF_IMM | BPF_DW,
                  .dst_reg = BPF_REG_1,
                  .src_reg = BPF_PSEUDO_MAP_FD,
                  .imm = map_fd },
                {},
                { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
                { .code = BPF_JMP | BPF_EXIT },
        };

        if (map_fd < 0)
                return true;
        prog_fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, ELEMENTSOF(insns), NULL);
        return prog_fd != -EINVAL;
}
