/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_REPAIR_H
#define KERNEL_REPAIR_H

#include "kernel/context.h"

/* Remembers which of the monitor's lines are somebody else's. */
int kernel_repair_note_foreign(KernelContext *c, const KernelLines *lines);

/* Watches the monitor's files, so that what others do is seen at once. */
int kernel_repair_start(KernelContext *c);
int kernel_repair_watch_file(KernelContext *c, KernelEntry *entry);
void kernel_repair_unwatch_file(KernelContext *c, KernelEntry *entry);

/*
 * Looks whether others did something, and whether all our bindings are where they belong; puts back
 * what is missing. Returns 0 or a negative errno.
 */
int kernel_repair_run(KernelContext *c);

/* Notices what others did. Returns true if anyone, we too, wrote to the monitor's files. */
bool kernel_repair_hear(KernelContext *c);

/*
 * A unit runs for which we have bindings: should the monitor have been left to others, they are set
 * again.
 */
int kernel_repair_on_use(KernelContext *c);

/* Others have taken bindings away too often of late. */
bool kernel_repair_is_hopeless(const KernelContext *c);

#endif
