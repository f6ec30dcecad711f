/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_TASKS_H
#define BPF_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/memory.h"
#include "report/violation.h"

/*
 * The tasks and their open windows, in memory that is shared with the BPF programs (the map "tasks"
 * is mapped, as far as it was ever in use): for counting windows, and for ending those of a binding
 * that goes away.
 */

typedef struct TaskTable {
        BpfMemory memory;
        const uint32_t *end; /* no slot from *end on was ever in use */
} TaskTable;

/* The descriptor stays the caller's; *end is in the programs' memory. Both must stay valid. */
void task_table_init(TaskTable *table, int map_fd, size_t n, const uint32_t *end);
void task_table_done(TaskTable *table);

/* Has a task of that process a slot, as one has since a window began in it that is no user's? */
bool task_table_has_process(TaskTable *table, uint32_t pid);

/*
 * How many windows of the binding of that generation are open. Here and below: returns 0, or a
 * negative errno if not all slots could be looked at.
 */
int task_table_count(TaskTable *table, uint64_t generation, uint64_t *ret);

/*
 * Report: times, task and state are filled in, of a window that was just ended as "removed". claim:
 * whether its violation has been reported, and with which number. is_elsewhere: the task is on
 * another stack, so that nobody knows whether it was left long ago.
 */
typedef void (*TaskTableHandler)(Report *report, uint64_t claim, bool is_elsewhere, void *userdata);

/* Ends those windows, each once: the programs may be ending the same ones. */
int task_table_end(TaskTable *table, uint64_t generation, TaskTableHandler handler, void *userdata);

/* Calls the visitor for each slot with such a window, until it fails. */
typedef int (*TaskTableVisitor)(uint32_t slot, void *userdata);

int task_table_visit(TaskTable *table, uint64_t generation, TaskTableVisitor visitor,
                     void *userdata);

#endif
