/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_OWNER_H
#define KERNEL_OWNER_H

#include "kernel/context.h"

/*
 * Will the threads that run this binding be its own? 0, or -EOPNOTSUPP and a sentence that names
 * the binding which they may belong to. look: the same for all that are set, after others changed
 * something.
 */
int kernel_owner_check(const KernelContext *c, const KernelEntry *entry, char **ret_reason);
void kernel_owner_look(KernelContext *c);

#endif
