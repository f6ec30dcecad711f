/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_ENTRY_H
#define KERNEL_ENTRY_H

#include "kernel/context.h"

/* The lowest threshold from the budget on that nobody has had: 0 if there is none. */
uint64_t kernel_choose_threshold(const KernelContext *c, uint64_t budget_ns);

/* Sets the binding in the monitor; on failure *ret_reason is a sentence, or NULL. */
int kernel_entry_attach(KernelContext *c, KernelEntry *entry, const Binding *binding,
                        const BindingFile *file, char **ret_reason);

/*
 * Another threshold. 0, also when it cannot be set any more: then the entry is given up, and will
 * have its budget in another place. A negative errno: it has the one that it had.
 */
int kernel_entry_change(KernelContext *c, KernelEntry *entry, uint64_t threshold);

/* The entry is free again. It touches the monitor no more. */
void kernel_entry_done(KernelContext *c, KernelEntry *entry);

#endif
