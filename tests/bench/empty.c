/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "empty.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "bench.h"

int empty_load(bool multi) {
        static const struct bpf_insn insns[] = {
                { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
                { .code = BPF_JMP | BPF_EXIT },
        };
        LIBBPF_OPTS(bpf_prog_load_opts, opts);
        int r;

        if (multi)
                opts.expected_attach_type = 48; /* BPF_TRACE_UPROBE_MULTI */
        r = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, ELEMENTSOF(insns), &opts);
        return r < 0 ? bench_fail(r, "Failed to load an empty BPF program") : r;
}
