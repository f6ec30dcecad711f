/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Asked of the kernel, with a program that does no more than that, and is attached to nothing. The
 * same kernels do not execute the instruction under the probe when the program has gone on from
 * there.
 */

#include "bpf/registers.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <sys/user.h>

#include "base/cleanup.h"
#include "bpf/kernel-types.h"

#if defined(__x86_64__)

static bool program_is_taken(void) {
        static const struct bpf_insn insns[] = {
                { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
                { .code = BPF_STX | BPF_MEM | BPF_DW,
                  .dst_reg = BPF_REG_1,
                  .src_reg = BPF_REG_0,
                  .off = offsetof(struct user_regs_struct, rip) },
                { .code = BPF_JMP | BPF_EXIT },
        };
        _cleanup_close_ int fd = -EBADF;

        fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, ELEMENTSOF(insns), NULL);
        return fd >= 0;
}

bool registers_can_be_set(const struct btf *btf) {
        /* With CONFIG_X86_USER_SHADOW_STACK, it must be seen who has one. */
        if (btf__find_by_name_kind(btf, "thread_shstk", BTF_KIND_STRUCT) > 0 &&
            !kernel_types_have_member(btf, "thread_struct", "features"))
                return false;
        return kernel_types_have_member(btf, "uprobe_task", "auprobe") &&
               kernel_types_have_member(btf, "arch_uprobe", "insn") &&
               kernel_types_have_member(btf, "uprobe", "consumers") && program_is_taken();
}

#else

bool registers_can_be_set(const struct btf *btf) {
        return false;
}

#endif
