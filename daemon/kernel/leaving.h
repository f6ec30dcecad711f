/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_LEAVING_H
#define KERNEL_LEAVING_H

#include "kernel/context.h"

/*
 * Has the line taken out of the monitor; fd: of its file, or -EBADF, taken over. reap() sees what
 * became of it, and wait_for() waits for those on the same file, where a new one may be in their
 * way.
 */
void kernel_leaving_add(KernelContext *c, const KernelLine *line, int fd);
void kernel_leaving_reap(KernelContext *c);
void kernel_leaving_wait_for(KernelContext *c, const char *path);

#endif
