// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds where the running kernel has what the other programs must know. It sees each symbol with
 * its address, in their order, and needs no right for that but the one to be loaded: whoever reads
 * the addresses in /proc/kallsyms needs CAP_SYSLOG, and can then read the kernel's log, too.
 *
 * It is an object of its own because the others are loaded with what it has found.
 */
#include "bpf/program/kernel.bpf.h"

#define NAME_SIZE 32 /* longer than those that are looked for */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct tlob_symbols found = {};

/* A function ends where the next symbol begins. The one of which the end is looked for: */
static enum {
	NO_FUNCTION,
	SOFTIRQS,
	NETWORK,
} open_function = NO_FUNCTION;

#define is_called(name, text) (bpf_strncmp(name, NAME_SIZE, text) == 0)

static __always_inline void function_end(__u64 address)
{
	if (open_function == SOFTIRQS && address > found.softirqs.begin)
		found.softirqs.end = address;
	else if (open_function == NETWORK && address > found.network.begin)
		found.network.end = address;
	else
		return;
	open_function = NO_FUNCTION;
}

static __always_inline void softirqs_begin(__u64 address)
{
	found.softirqs.begin = address;
	found.softirqs.end = 0;
	open_function = SOFTIRQS;
}

static __always_inline void symbol_take(const char *name, __u64 address)
{
	/* On x86 the entries of exceptions come first, in the same place. */
	if (is_called(name, "__irqentry_text_start") || is_called(name, "asm_common_interrupt"))
		found.interrupts.begin = address;
	else if (is_called(name, "__irqentry_text_end"))
		found.interrupts.end = address;
	/* Until Linux 6.9 it has the second name, which is later another's that calls it. */
	else if (is_called(name, "handle_softirqs"))
		softirqs_begin(address);
	else if (is_called(name, "__do_softirq")) {
		if (!found.softirqs.begin)
			softirqs_begin(address);
	} else if (is_called(name, "net_rx_action")) {
		found.network.begin = address;
		open_function = NETWORK;
	} else if (is_called(name, "__per_cpu_offset"))
		found.per_cpu_offset = address;
	else if (is_called(name, "steal_time"))
		found.steal_time = address;
}

SEC("iter/ksym")
int find_symbols(struct bpf_iter__ksym *ctx)
{
	struct kallsym_iter *symbol = ctx->ksym;
	char name[NAME_SIZE];

	/* Modules come last. */
	if (!symbol || symbol->module_name[0])
		return 0;
	if (bpf_probe_read_kernel_str(name, sizeof(name),
				      __builtin_preserve_access_index(&symbol->name)) <= 0)
		return 0;
	function_end(symbol->value);
	symbol_take(name, symbol->value);
	return 0;
}
