/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_RETURN_BPF_H
#define BPF_PROGRAM_RETURN_BPF_H

#include "bpf/program/maps.bpf.h"

/*
 * A return instruction under a probe is executed by the kernel somewhere else, in a single step:
 * that is one more trap, and on virtual machines ten times the price of the first. Where a program
 * may set the registers of the task (bpf/registers.h), it returns in the place of the task, and
 * nothing is left to be stepped.
 *
 * Left to the kernel are all cases in which anybody could tell the difference.
 */

/* Can it be done here? Found by the daemon. */
const volatile bool sets_registers = false;

#if defined(__TARGET_ARCH_x86)

#define OPCODE_RET   0xc3
#define PREFIX_REPNE 0xf2
#define PREFIX_REPE  0xf3

#define USER_CODE_64  0x33	     /* in cs */
#define FLAGS_TRAP    0x100	     /* somebody steps through the program */
#define ADDRESSES_END 0x7ffffffff000 /* of user space, unless somebody asks for more */

#define FEATURE_SHADOW_STACK 1

static __always_inline bool is_return(const struct arch_uprobe *arch)
{
	__u8 first = arch->insn[0];

	return first == OPCODE_RET ||
	       ((first == PREFIX_REPNE || first == PREFIX_REPE) && arch->insn[1] == OPCODE_RET);
}

/* Whoever else has a probe there would find the registers changed. */
static __always_inline bool is_only_ours(const struct arch_uprobe *arch)
{
	const void *probe = (const void *)arch - bpf_core_field_offset(struct uprobe, arch);
	struct list_head consumers;

	return !bpf_probe_read_kernel(&consumers, sizeof(consumers),
				      probe + bpf_core_field_offset(struct uprobe, consumers)) &&
	       consumers.next == consumers.prev;
}

/* The processor keeps return addresses a second time, and compares. */
static __always_inline bool has_shadow_stack(struct task_struct *task)
{
	return bpf_core_field_exists(task->thread.features) &&
	       task->thread.features & FEATURE_SHADOW_STACK;
}

/* The current task is at a probe: if that is on a return instruction, it is executed. */
static __always_inline void return_at_once(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct arch_uprobe *arch;
	__u64 address;

	if (!sets_registers)
		return;
	arch = task->utask->auprobe;
	if (!is_return(arch) || !is_only_ours(arch) || has_shadow_stack(task))
		return;
	if (ctx->cs != USER_CODE_64 || ctx->eflags & FLAGS_TRAP)
		return;
	if (bpf_probe_read_user(&address, sizeof(address), (void *)ctx->rsp) ||
	    address >= ADDRESSES_END || address == ctx->rip)
		return;
	ctx->rip = address;
	ctx->rsp += sizeof(address);
}

#else

static __always_inline void return_at_once(struct pt_regs *ctx)
{
}

#endif

#endif
