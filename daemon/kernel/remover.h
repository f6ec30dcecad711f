/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_REMOVER_H
#define KERNEL_REMOVER_H

#include "base/cleanup.h"
#include "kernel/line.h"
#include "kernel/monitor.h"

/*
 * Takes bindings out of the monitor in the background: each waits there until no CPU is in its
 * probes, for some tenths of a second.
 */
typedef struct KernelRemover KernelRemover;

/* What became of one. */
typedef struct KernelRemoval {
        KernelLine line; /* the caller's */
        int error;       /* 0, or a negative errno; -ENOENT: it was not there */
} KernelRemoval;

/* kick_fd, an eventfd, gets readable with each one that is done. Neither is taken over. */
int kernel_remover_new(const KernelMonitor *monitor, int kick_fd, KernelRemover **ret);

/* Waits until all is done. */
KernelRemover *kernel_remover_free(KernelRemover *remover);
DEFINE_CLEANUP(KernelRemover, kernel_remover_free);

/*
 * Copies line, and takes fd over in any case: of its file, or -EBADF. Returns 0 or -ENOMEM: nothing
 * is done.
 */
int kernel_remover_push(KernelRemover *remover, const KernelLine *line, int fd);

/* Waits until all that was pushed is done. */
void kernel_remover_wait(KernelRemover *remover);

/* The next that is done. Returns 1, or 0 when there is none. */
int kernel_remover_pop(KernelRemover *remover, KernelRemoval *ret);

#endif
