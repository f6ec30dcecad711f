/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What becomes of a violation that the monitor says: whose it is, whether it is one at all, and whether its
 * task is in the unit of its binding. What is not reported is counted.
 */

#include "kernel-backend.h"

static KernelEntry *find_entry(KernelBackend *b, uint64_t threshold) {
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].used && b->entries[i].line.threshold == threshold)
                        return &b->entries[i];
        return NULL;
}

static void report_event(KernelBackend *b, const KernelEvent *event, const KernelEntry *entry,
                         const KernelTask *task, uint64_t elapsed_ns) {
        Report report = {
                .type = REPORT_VIOLATION,
                .backend_index = (uint32_t) (entry - b->entries),
                /* The other back end counts from 1. */
                .id = UINT64_C(1) << 63 | event->time_ns << 8 | (b->sequence++ & 0xff),
                .time_ns = event->time_ns,
                .late_ns = STATISTIC_UNKNOWN,
                .elapsed_ns = elapsed_ns,
                .budget = TLOB_BUDGET_TOTAL,
                .exceeded = 1U << TLOB_BUDGET_TOTAL,
                .state = event->state,
        };

        memcpy(report.spent_ns, event->spent_ns, sizeof(report.spent_ns));
        if (b->sees_tasks)
                report.tid = (uint32_t) event->id;
        if (task) {
                report.pid = task->pid;
                report.cgroup_id = task->cgroup_id;
                memcpy(report.comm, task->comm, sizeof(report.comm));
        }
        b->handler(&report, b->userdata);
}

void kernel_on_violation(const KernelEvent *event, void *userdata) {
        KernelBackend *b = userdata;
        const KernelTask *task = NULL;
        uint64_t elapsed_ns = 0;
        KernelEntry *entry;

        entry = find_entry(b, event->threshold);
        if (!entry) {
                b->n_unowned++;
                return;
        }
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                elapsed_ns += event->spent_ns[i];
        if (elapsed_ns / kernel_monitor_unit_ns(&b->monitor) < event->threshold) {
                b->n_false++;
                return;
        }
        if (b->sees_tasks)
                task = kernel_tasks_get(b->tasks, (uint32_t) event->id);
        if (entry->unit &&
            (!task || entry->cgroup_id == 0 ||
             !kernel_tasks_is_in(b->tasks, task, entry->cgroup_id, entry->cgroup_level))) {
                b->n_outside++;
                return;
        }
        entry->violations++;
        report_event(b, event, entry, task, elapsed_ns);
}
