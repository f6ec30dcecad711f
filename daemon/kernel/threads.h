/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_THREADS_H
#define KERNEL_THREADS_H

#include <stddef.h>

#include "kernel/file.h"

/*
 * How many threads may run code of these files now: of programs that are running, and of processes
 * that have a library mapped. each (may be NULL): of every file by itself; *ret_total: a thread
 * counts once. When there are more than max, nobody wants to know how many more: it stops looking.
 * It can wait for a process for as long as that likes, so the event loop has kernel_census().
 * process (may be NULL): the one that is looked at, for another thread to read.
 */
int kernel_threads_count(const KernelFile *files, size_t n_files, unsigned max, unsigned *each,
                         unsigned *ret_total, pid_t *process);

#endif
