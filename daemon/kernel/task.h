/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_TASK_H
#define KERNEL_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/words.h"

/* Who a task is, by its thread id: what the monitor's events leave out. */

typedef struct KernelTask {
        uint32_t tid;
        uint32_t pid;
        uint64_t begin_ns;  /* then, or up to a clock tick earlier */
        uint64_t cgroup_id; /* 0: unknown */
        char *cgroup;       /* its path in the cgroup v2 hierarchy; NULL: unknown */
        char comm[TLOB_COMM_LEN + 1];
} KernelTask;

/* Remembers the tasks that it was asked for, for when they have gone. */
typedef struct KernelTasks KernelTasks;

int kernel_tasks_new(KernelTasks **ret);
KernelTasks *kernel_tasks_free(KernelTasks *tasks);
DEFINE_CLEANUP(KernelTasks, kernel_tasks_free);

/*
 * The task that had that id at that time, as it is or as it was when last asked for. Owned by
 * tasks, until the next call. NULL: unknown.
 */
const KernelTask *kernel_tasks_get(KernelTasks *tasks, uint32_t tid, uint64_t time_ns);

/* True if the task is in the cgroup of that id, at that depth, or below it. */
bool kernel_tasks_is_in(KernelTasks *tasks, const KernelTask *task, uint64_t cgroup_id,
                        unsigned level);

/* Thread ids in /proc are those of the events. */
bool kernel_tasks_are_visible(void);

#endif
