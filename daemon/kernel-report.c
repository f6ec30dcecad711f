/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What becomes of a violation that the monitor says: whose it is, whether it is one at all, and whether its
 * task is in the unit of its binding. What is not reported is counted.
 */

#include "kernel-backend.h"

#include "sentence.h"

static KernelEntry *find_entry(KernelBackend *b, uint64_t threshold) {
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].used && b->entries[i].line.threshold == threshold)
                        return &b->entries[i];
        return NULL;
}

static bool is_of_entry(const KernelBackend *b, const KernelLine *line) {
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].used && kernel_line_equal(&b->entries[i].line, line))
                        return true;
        return false;
}

/* Lines that are no entry's: what is leaving is still one until its last reports are dispatched. */
static size_t count_owners(const KernelBackend *b, const KernelLines *lines,
                           const KernelFile *program) {
        size_t n = 0;

        for (size_t i = 0; i < lines->n; i++) {
                KernelFile file;

                if (is_of_entry(b, &lines->items[i]))
                        continue;
                file = kernel_file_from_path(lines->items[i].path);
                n += kernel_file_is_run_by(&file, program);
        }
        return n;
}

/* By the program that the task runs. Of a task that is gone it may be any. */
static KernelEntry *find_entry_of_task(KernelBackend *b, const KernelEvent *event) {
        KernelFile file, *program = NULL;
        KernelEntry *found = NULL;
        size_t n = 0;

        if (b->sees_tasks && kernel_file_from_task((uint32_t) event->id, &file) >= 0)
                program = &file;
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].used && kernel_file_is_run_by(&b->entries[i].file, program)) {
                        found = &b->entries[i];
                        n++;
                }
        n += count_owners(b, &b->foreign, program) + count_owners(b, &b->left, program) +
             count_owners(b, &b->leaving, program);
        if (n > 1) {
                b->n_ambiguous++;
                return NULL;
        }
        b->n_unowned += !found;
        return found;
}

static KernelEntry *find_owner(KernelBackend *b, const KernelEvent *event) {
        KernelEntry *entry;

        if (kernel_monitor_has_names(&b->monitor))
                return find_entry_of_task(b, event);
        entry = find_entry(b, event->threshold);
        b->n_unowned += !entry;
        return entry;
}

int kernel_check_owner(const KernelBackend *b, const KernelEntry *entry, char **ret_reason) {
        const char *other = NULL;

        for (size_t i = 0; i < b->n_entries && !other; i++)
                if (b->entries[i].used && &b->entries[i] != entry &&
                    kernel_file_overlaps(&b->entries[i].file, &entry->file))
                        other = b->entries[i].line.text;
        for (size_t i = 0; i < b->foreign.n && !other; i++) {
                KernelFile file = kernel_file_from_path(b->foreign.items[i].path);

                if (kernel_file_overlaps(&file, &entry->file))
                        other = b->foreign.items[i].text;
        }
        if (!other)
                return 0;
        return sentence_error(-EOPNOTSUPP, ret_reason,
                              "The events of the kernel's monitor name no binding, and this one "
                              "could not be told from '%s'",
                              other);
}

static bool is_below_budget(const KernelBackend *b, const KernelEvent *event,
                            const KernelEntry *entry, uint64_t elapsed_ns) {
        if (kernel_monitor_has_names(&b->monitor))
                return elapsed_ns < entry->budget_ns;
        return elapsed_ns / kernel_monitor_unit_ns(&b->monitor) < event->threshold;
}

/* Where thresholds do not tell: of a binding that was on the same program before. */
static bool is_older(const KernelBackend *b, const KernelEvent *event, const KernelEntry *entry,
                     uint64_t elapsed_ns) {
        return kernel_monitor_has_names(&b->monitor) &&
               event->time_ns - elapsed_ns < entry->since_ns;
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

        entry = find_owner(b, event);
        if (!entry)
                return;
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                elapsed_ns += event->spent_ns[i];
        if (is_older(b, event, entry, elapsed_ns)) {
                b->n_unowned++;
                return;
        }
        if (is_below_budget(b, event, entry, elapsed_ns)) {
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
