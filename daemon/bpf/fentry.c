/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Two programs of a few instructions: int start(void) { return bridge(); }, and one on bridge().
 * The kernel knows the functions by the types that come with the program. To find out with our own
 * programs takes a hundred times as long.
 */

#include "bpf/fentry.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>

#include "base/cleanup.h"
#include "bpf/opts.h"

#define MOV_0      { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 }
#define EXIT       { .code = BPF_JMP | BPF_EXIT }
#define CALL(over) { .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = (over) }

enum {
        FUNCTION_START,
        FUNCTION_BRIDGE,
        N_FUNCTIONS,
};

/* Their types, which are in the kernel then. */
static int add_types(struct btf *btf, uint32_t ids[static N_FUNCTIONS]) {
        static const char *const names[] = { "start", "bridge" };
        int number = btf__add_int(btf, "int", sizeof(int), BTF_INT_SIGNED),
            prototype = btf__add_func_proto(btf, number);

        if (number < 0 || prototype < 0)
                return -ENOMEM;
        for (size_t i = 0; i < N_FUNCTIONS; i++) {
                int id = btf__add_func(btf, names[i], BTF_FUNC_GLOBAL, prototype);

                if (id < 0)
                        return -ENOMEM;
                ids[i] = (uint32_t) id;
        }
        return btf__load_into_kernel(btf);
}

/* A descriptor or a negative errno. */
static int load_start(const struct btf *btf, const uint32_t ids[static N_FUNCTIONS]) {
        static const struct bpf_insn insns[] = { CALL(1), EXIT, MOV_0, EXIT };
        const struct bpf_func_info functions[] = { { 0, ids[FUNCTION_START] },
                                                   { 2, ids[FUNCTION_BRIDGE] } };
        struct bpf_prog_load_opts opts;

        opts_init(&opts);
        opts.prog_btf_fd = (uint32_t) btf__fd(btf);
        opts.func_info = functions;
        opts.func_info_cnt = N_FUNCTIONS;
        opts.func_info_rec_size = sizeof(functions[0]);
        return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, ELEMENTSOF(insns), &opts);
}

static int load_tracer(int start_fd, uint32_t function) {
        static const struct bpf_insn insns[] = { MOV_0, EXIT };
        struct bpf_prog_load_opts opts;

        opts_init(&opts);
        opts.expected_attach_type = BPF_TRACE_FENTRY;
        opts.attach_prog_fd = (uint32_t) start_fd;
        opts.attach_btf_id = function;
        return bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "GPL", insns, ELEMENTSOF(insns), &opts);
}

bool fentry_is_allowed(void) {
        _cleanup_close_ int start_fd = -EBADF, tracer_fd = -EBADF;
        struct btf *btf = btf__new_empty();
        uint32_t ids[N_FUNCTIONS];

        if (btf && add_types(btf, ids) >= 0)
                start_fd = load_start(btf, ids);
        if (start_fd >= 0)
                tracer_fd = load_tracer(start_fd, ids[FUNCTION_BRIDGE]);
        btf__free(btf);
        return tracer_fd >= 0;
}
