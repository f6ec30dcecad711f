/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_TASKS_H
#define BPF_TASKS_H

#include <stddef.h>
#include <stdint.h>

#include "report/violation.h"

/*
 * The tasks and their open windows, in memory that is shared with the BPF programs (the map "tasks"
 * is mapped): for counting windows, and for ending those of a binding that goes away.
 */

typedef struct TaskTable {
        struct tlob_task *tasks;
        size_t n;
        const uint32_t *end; /* no slot from *end on was ever in use */
} TaskTable;

/* Maps the map; *end is in the programs' memory and must stay valid. */
int task_table_init(TaskTable *table, int map_fd, size_t n, const uint32_t *end);
void task_table_done(TaskTable *table);

/* How many windows of the binding of that generation are open. */
uint64_t task_table_count(const TaskTable *table, uint64_t generation);

/*
 * Report: times, task and state are filled in, of a window that was just ended as "removed". claim:
 * whether its violation has been reported, and with which number.
 */
typedef void (*TaskTableHandler)(Report *report, uint64_t claim, void *userdata);

/* Ends those windows, each once: the programs may be ending the same ones. */
void task_table_end(TaskTable *table, uint64_t generation, TaskTableHandler handler,
                    void *userdata);

/* Calls the visitor for each slot with such a window, until it fails. Returns 0 or its error. */
typedef int (*TaskTableVisitor)(uint32_t slot, void *userdata);

int task_table_visit(const TaskTable *table, uint64_t generation, TaskTableVisitor visitor,
                     void *userdata);

#endif
