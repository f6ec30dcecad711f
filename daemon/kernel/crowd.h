/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_CROWD_H
#define KERNEL_CROWD_H

#include "kernel/context.h"

/*
 * All bindings share the monitor's slots. check: is there room with this one, too? 0, or
 * -EOPNOTSUPP and a sentence. watch: starts to look again and again while there is any binding;
 * run: looks now, if it is time.
 */
int kernel_crowd_check(const KernelContext *c, char **ret_reason);
int kernel_crowd_watch(KernelContext *c);
void kernel_crowd_run(KernelContext *c);

#endif
