/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What becomes of a violation that the monitor says: whose it is, whether it is one at all, and
 * whether its task is in the unit of its binding. What is not reported is counted.
 */

#include "kernel/report.h"

#include "kernel/context.h"

/* Else all that is known of it is its task, and by the word of the monitor's clock its length. */
static bool has_breakdown(const KernelEvent *event) {
        return event->type == KERNEL_EVENT_DETAIL;
}

static KernelEntry *find_entry(KernelContext *c, uint64_t threshold) {
        for (size_t i = 0; i < c->n_entries; i++)
                if (c->entries[i].used && c->entries[i].line.threshold == threshold)
                        return &c->entries[i];
        return NULL;
}

static bool is_of_entry(const KernelContext *c, const KernelLine *line) {
        for (size_t i = 0; i < c->n_entries; i++)
                if (c->entries[i].used && kernel_line_equal(&c->entries[i].line, line))
                        return true;
        return false;
}

/* Lines that are no entry's: what is leaving is still one until its last reports are dispatched. */
static size_t count_owners(const KernelContext *c, const KernelLines *lines,
                           const KernelFile *program) {
        size_t n = 0;

        for (size_t i = 0; i < lines->n; i++) {
                KernelFile file;

                if (is_of_entry(c, &lines->items[i]))
                        continue;
                file = kernel_file_from_path(c->files, lines->items[i].path);
                n += kernel_file_is_run_by(&file, program);
        }
        return n;
}

/* By the program that the task runs. Of a task that is gone it may be any. */
static KernelEntry *find_entry_of_task(KernelContext *c, const KernelEvent *event) {
        KernelFile file, *program = NULL;
        KernelEntry *found = NULL;
        size_t n = 0;

        if (c->sees_tasks && kernel_file_from_task((uint32_t) event->id, &file) >= 0)
                program = &file;
        for (size_t i = 0; i < c->n_entries; i++)
                if (c->entries[i].used && kernel_file_is_run_by(&c->entries[i].file, program)) {
                        found = &c->entries[i];
                        n++;
                }
        for (size_t i = 0; i < c->foreign.n; i++)
                n += kernel_file_is_run_by(&c->foreign_files[i], program);
        n += count_owners(c, &c->left, program) + count_owners(c, &c->leaving, program);
        if (n > 1) {
                c->n_ambiguous++;
                return NULL;
        }
        c->n_unowned += !found;
        return found;
}

static KernelEntry *find_owner(KernelContext *c, const KernelEvent *event) {
        KernelEntry *entry;

        if (kernel_monitor_has_names(&c->monitor) || !has_breakdown(event))
                return find_entry_of_task(c, event);
        entry = find_entry(c, event->threshold);
        c->n_unowned += !entry;
        return entry;
}

/* What the monitor's clock says may also be the time since the deadline. */
static uint64_t elapsed_of(const KernelEvent *event, const KernelEntry *entry) {
        uint64_t elapsed_ns = 0;

        if (!has_breakdown(event))
                return event->elapsed_ns >= entry->budget_ns ? event->elapsed_ns
                                                             : STATISTIC_UNKNOWN;
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                elapsed_ns += event->spent_ns[i];
        return elapsed_ns;
}

static bool is_below_budget(const KernelContext *c, const KernelEvent *event,
                            const KernelEntry *entry, uint64_t elapsed_ns) {
        if (!has_breakdown(event))
                return false;
        if (kernel_monitor_has_names(&c->monitor))
                return elapsed_ns < entry->budget_ns;
        return elapsed_ns / kernel_monitor_unit_ns(&c->monitor) < event->threshold;
}

/* Where thresholds do not tell: of a binding that was on the same program before. */
static bool is_older(const KernelContext *c, const KernelEvent *event, const KernelEntry *entry,
                     uint64_t elapsed_ns) {
        uint64_t least_ns = elapsed_ns == STATISTIC_UNKNOWN ? entry->budget_ns : elapsed_ns;

        return (kernel_monitor_has_names(&c->monitor) || !has_breakdown(event)) &&
               event->time_ns - least_ns < entry->since_ns;
}

static void report_event(KernelContext *c, const KernelEvent *event, const KernelEntry *entry,
                         const KernelTask *task, uint64_t elapsed_ns) {
        Report report = {
                .type = REPORT_VIOLATION,
                .backend_index = (uint32_t) (entry - c->entries),
                /* The other back end counts from 1. */
                .id = UINT64_C(1) << 63 | event->time_ns << 8 | (c->sequence++ & 0xff),
                .time_ns = event->time_ns,
                .late_ns = STATISTIC_UNKNOWN,
                .elapsed_ns = elapsed_ns,
                .budget = TLOB_BUDGET_TOTAL,
                .exceeded = 1U << TLOB_BUDGET_TOTAL,
                .state = event->state,
        };

        for (size_t i = 0; i < TLOB_N_STATES; i++)
                report.spent_ns[i] = has_breakdown(event) ? event->spent_ns[i] : STATISTIC_UNKNOWN;
        if (c->sees_tasks)
                report.tid = (uint32_t) event->id;
        if (task) {
                report.pid = task->pid;
                report.cgroup_id = task->cgroup_id;
                memcpy(report.comm, task->comm, sizeof(report.comm));
        }
        c->handler(&report, c->userdata);
}

void kernel_on_violation(const KernelEvent *event, void *userdata) {
        KernelContext *c = userdata;
        const KernelTask *task = NULL;
        uint64_t elapsed_ns;
        KernelEntry *entry;

        entry = find_owner(c, event);
        if (!entry)
                return;
        elapsed_ns = elapsed_of(event, entry);
        if (is_older(c, event, entry, elapsed_ns)) {
                c->n_unowned++;
                return;
        }
        if (is_below_budget(c, event, entry, elapsed_ns)) {
                c->n_false++;
                return;
        }
        if (c->sees_tasks)
                task = kernel_tasks_get(c->tasks, (uint32_t) event->id, event->time_ns);
        if (c->own_pid && task && task->pid == c->own_pid)
                return;
        if (entry->unit && entry->cgroup_id != 0 && !task) {
                c->n_ended++;
                return;
        }
        if (entry->unit &&
            (!task || entry->cgroup_id == 0 ||
             !kernel_tasks_is_in(c->tasks, task, entry->cgroup_id, entry->cgroup_level))) {
                c->n_outside++;
                return;
        }
        entry->violations++;
        c->n_at_stops += !has_breakdown(event);
        report_event(c, event, entry, task, elapsed_ns);
}
