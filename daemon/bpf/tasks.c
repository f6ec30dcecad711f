/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Reads and ends windows from outside, while tasks go on running and the BPF programs go on
 * changing the same memory. A window is ended by whoever swaps its claim to "closed". The totals of
 * a task are read under its sequence count, as the programs do, which here may be in the middle of
 * a change on another CPU.
 */

#include "bpf/tasks.h"

#include "base/clock.h"
#include "bpf/layout.h"
#include "bpf/memory.h"

int task_table_init(TaskTable *table, int map_fd, size_t n, const uint32_t *end) {
        void *memory;
        int r;

        r = bpf_memory_map(map_fd, n, sizeof(struct tlob_task), &memory);
        if (r < 0)
                return r;

        *table = (TaskTable){ .tasks = memory, .n = n, .end = end };
        return 0;
}

void task_table_done(TaskTable *table) {
        bpf_memory_unmap(table->tasks, table->n, sizeof(*table->tasks));
        *table = (TaskTable){};
}

static size_t task_table_end_slot(const TaskTable *table) {
        size_t end = __atomic_load_n(table->end, __ATOMIC_RELAXED);

        return end < table->n ? end : table->n;
}

static unsigned task_count(const struct tlob_task *task, uint64_t generation) {
        unsigned n = 0;

        for (size_t i = 0; i < TLOB_WINDOWS_MAX; i++)
                n += __atomic_load_n(&task->open[i], __ATOMIC_RELAXED) == generation;
        return n;
}

uint64_t task_table_count(const TaskTable *table, uint64_t generation) {
        uint64_t n = 0;

        for (size_t i = 0; i < task_table_end_slot(table); i++)
                n += task_count(&table->tasks[i], generation);
        return n;
}

int task_table_visit(const TaskTable *table, uint64_t generation, TaskTableVisitor visitor,
                     void *userdata) {
        for (size_t i = 0; i < task_table_end_slot(table); i++) {
                int r = task_count(&table->tasks[i], generation) > 0
                                ? visitor((uint32_t) i, userdata)
                                : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

/* The totals of a task at this moment, and its state. Returns the moment. */
static uint64_t read_totals(const struct tlob_task *t, uint64_t totals[static TLOB_N_STATES],
                            uint32_t *ret_state) {
        uint64_t sequence, last, now;

        do {
                sequence = __atomic_load_n(&t->sequence, __ATOMIC_ACQUIRE);
                now = now_ns();
                last = __atomic_load_n(&t->last_ns, __ATOMIC_RELAXED);
                *ret_state = __atomic_load_n(&t->state, __ATOMIC_RELAXED);
                for (size_t i = 0; i < TLOB_N_STATES; i++)
                        totals[i] = __atomic_load_n(&t->total_ns[i], __ATOMIC_RELAXED);
                __atomic_thread_fence(__ATOMIC_ACQUIRE);
        } while ((sequence & 1) || __atomic_load_n(&t->sequence, __ATOMIC_RELAXED) != sequence);

        if (now < last)
                now = last;
        if (*ret_state < TLOB_N_STATES)
                totals[*ret_state] += now - last;
        return now;
}

static void window_read(const struct tlob_task *t, const struct tlob_window *w, Report *ret) {
        uint64_t totals[TLOB_N_STATES];
        uint32_t state;

        *ret = (Report){
                .backend_index = w->binding,
                .time_ns = read_totals(t, totals, &state),
                .end = TLOB_END_REMOVED,
                .tid = t->tid,
                .pid = t->pid,
        };
        ret->state = state;
        ret->elapsed_ns = ret->time_ns - w->start_ns;
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                ret->spent_ns[i] = totals[i] - w->base_ns[i];
}

/*
 * Ends the window, if it is one of that generation and nobody else does. Gives its claim, else 0.
 */
static uint64_t window_take(struct tlob_task *t, size_t place, uint64_t generation, Report *ret) {
        struct tlob_window *w = &t->windows[place];
        unsigned long long claim;

        do {
                claim = __atomic_load_n(&w->claim, __ATOMIC_ACQUIRE);
                if (claim == TLOB_CLAIM_CLOSED ||
                    __atomic_load_n(&t->open[place], __ATOMIC_RELAXED) != generation)
                        return TLOB_CLAIM_CLOSED;
                window_read(t, w, ret);
                /* A timer may report its violation meanwhile: then it is looked at again. */
        } while (!__atomic_compare_exchange_n(&w->claim, &claim, TLOB_CLAIM_CLOSED, false,
                                              __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));

        __atomic_store_n(&t->open[place], 0, __ATOMIC_RELEASE);
        return claim;
}

void task_table_end(TaskTable *table, uint64_t generation, TaskTableHandler handler,
                    void *userdata) {
        for (size_t i = 0; i < task_table_end_slot(table); i++)
                for (size_t j = 0; j < TLOB_WINDOWS_MAX; j++) {
                        struct tlob_task *t = &table->tasks[i];
                        uint64_t claim;
                        Report report;

                        claim = window_take(t, j, generation, &report);
                        if (claim != TLOB_CLAIM_CLOSED)
                                handler(&report, claim, userdata);
                }
}
