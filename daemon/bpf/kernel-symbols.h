/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_KERNEL_SYMBOLS_H
#define BPF_KERNEL_SYMBOLS_H

#include "bpf/layout.h"

/*
 * Finds where the running kernel has what. Returns 0, or a negative errno; what the kernel does not
 * tell is 0 there. -ENXIO: it does not tell where interrupts enter it, but perhaps the rest.
 * -EOPNOTSUPP: libbpf was refused what all programs need, and does not ask again.
 */
int kernel_symbols_find(struct tlob_symbols *ret);

#endif
