/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_MONITOR_H
#define KERNEL_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/dialect.h"
#include "kernel/line.h"
#include "kernel/tracing.h"

/* The files of the tlob monitor: its bindings, its switch, and what it reacts with. */

typedef struct KernelMonitor {
        KernelTracing *tracing; /* not owned */
        KernelDialect dialect;
} KernelMonitor;

/*
 * Looks whether there is a monitor that can be used, without changing anything. 0, or a negative
 * errno with a sentence; -ENOENT: this kernel has none.
 */
int kernel_monitor_init(KernelMonitor *monitor, KernelTracing *tracing, char **ret_reason);

/*
 * Is it ready to be used as it is set? Not when all monitors are switched off, nor when a violation
 * would stop the machine. 0 or -EOPNOTSUPP, and a sentence.
 */
int kernel_monitor_check(const KernelMonitor *monitor, char **ret_reason);

/* The bindings that are there, whoever put them there. */
int kernel_monitor_list(const KernelMonitor *monitor, KernelLines *ret);

/* The largest budget, and the smallest step of a threshold, in nanoseconds. */
#define KERNEL_THRESHOLD_MAX_NS UINT64_C(3600000000000)
uint64_t kernel_monitor_unit_ns(const KernelMonitor *monitor);

/*
 * Do its bindings have names, and its events nothing that tells the binding and the time in each
 * state?
 */
bool kernel_monitor_has_names(const KernelMonitor *monitor);

/* Does a thread belong to the binding that it runs first, as long as it lives? */
bool kernel_monitor_owns_threads(const KernelMonitor *monitor);

/*
 * Adds a binding on the file that fd has open, whatever has become of the path in its line. On
 * failure a sentence says why.
 */
int kernel_monitor_add(const KernelMonitor *monitor, int fd, const KernelLine *line,
                       char **ret_reason);

/* Takes it away again; also when the file was replaced meanwhile. -ENOENT: it is not there. */
int kernel_monitor_remove(const KernelMonitor *monitor, int fd, const KernelLine *line);

/* For lines whose file is not open here: put back, or taken away by path. */
int kernel_monitor_restore_line(const KernelMonitor *monitor, const KernelLine *line);
int kernel_monitor_remove_line(const KernelMonitor *monitor, const KernelLine *line);

int kernel_monitor_get_enabled(const KernelMonitor *monitor, bool *ret);
int kernel_monitor_set_enabled(const KernelMonitor *monitor, bool enabled);

/* All monitors: rv/monitoring_on. */
bool kernel_monitor_is_on(const KernelMonitor *monitor);

/* The files in which others can interfere, NULL after the last; static. */
extern const char *const kernel_monitor_files[];
#define KERNEL_MONITOR_ENABLE "rv/monitors/tlob/enable"

#endif
