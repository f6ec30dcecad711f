/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_SYMBOLS_H
#define KERNEL_SYMBOLS_H

#include <stdint.h>

/* Where the running kernel has what, by /proc/kallsyms. */

/*
 * Where interrupts, and not exceptions, enter the kernel: from *ret_begin to before *ret_end.
 * Returns 0, or -ENXIO: the kernel does not tell.
 */
int kernel_interrupt_entry(uint64_t *ret_begin, uint64_t *ret_end);

#endif
