/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_WINDOW_H
#define KERNEL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "kernel/event.h"

/* For monitors that say no breakdown: the open windows, and how long each was in which state. */
typedef struct KernelWindows KernelWindows;

typedef struct KernelWindowCounters {
        uint64_t unknown; /* errors in windows whose start was not seen */
        uint64_t aborted; /* windows that the monitor lost track of */
        uint64_t cut;     /* windows in which events were lost */
} KernelWindowCounters;

int kernel_windows_new(KernelWindows **ret);
KernelWindows *kernel_windows_free(KernelWindows *windows);
DEFINE_CLEANUP(KernelWindows, kernel_windows_free);

/*
 * Takes the next event of all CPUs, in the order of their times. Returns true when it is the error
 * of a window whose start was seen: *ret is that error, as a KERNEL_EVENT_DETAIL without a
 * threshold.
 */
bool kernel_windows_push(KernelWindows *windows, const KernelEvent *event, KernelEvent *ret);

/* Events were lost: what is known of the windows that are open now is wrong. */
void kernel_windows_cut(KernelWindows *windows);

void kernel_windows_get_counters(const KernelWindows *windows, KernelWindowCounters *ret);

#endif
