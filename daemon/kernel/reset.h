/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_RESET_H
#define KERNEL_RESET_H

#include "kernel/context.h"

/*
 * note: a binding on that file was taken away, by anyone. is_needed: one of ours may have threads
 * that it left behind, and is blind to them until the monitor is reset. forget: it has been. leave:
 * the monitor as it was found, for the bindings of others that are left.
 */
void kernel_reset_note(KernelContext *c, const KernelFile *file);
bool kernel_reset_is_needed(const KernelContext *c);
int kernel_reset_run(KernelContext *c);
void kernel_reset_forget(KernelContext *c);
void kernel_reset_leave(KernelContext *c);

#endif
