/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_STATE_H
#define KERNEL_STATE_H

#include <stdbool.h>

#include "kernel/line.h"

/*
 * What has to be put back in the kernel, on disk: a daemon that dies leaves its bindings in the
 * monitor, and the next one has to know which are its own.
 */
typedef struct KernelState {
        bool enabled;      /* the monitor was enabled before we came */
        bool mounted;      /* we mounted the tracing file system */
        KernelLines lines; /* our bindings, as the monitor shows them */
} KernelState;

/* Where the daemon has it. */
#define KERNEL_STATE_DIRECTORY "/run/tlob"

void kernel_state_done(KernelState *state);

/* 0, -ENOENT: a daemon before us has left nothing; or another negative errno. */
int kernel_state_load(const char *directory, KernelState *ret);

/* A daemon before us has left something. */
bool kernel_state_is_left(const char *directory);

/*
 * Takes the place of what is there, as a whole; if it fails, what is there stays. Makes the
 * directory.
 */
int kernel_state_save(const char *directory, const KernelState *state);

/* All is put back. */
int kernel_state_forget(const char *directory);

#endif
