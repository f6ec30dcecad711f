/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Reads and ends windows from outside, while tasks go on running and the BPF programs go on
 * changing the same memory. A window is ended by whoever swaps its claim to "closed". The totals of
 * a task are read under its sequence count, as the programs do, which here may be in the middle of
 * a change on another CPU.
 */

#include "bpf/tasks.h"

#include <string.h>

#include "base/clock.h"
#include "bpf/layout.h"
#include "bpf/records.h"

void task_table_init(TaskTable *table, int map_fd, size_t n, const uint32_t *end) {
        *table = (TaskTable) {
                .memory = { .map_fd = map_fd, .n = n, .value_size = sizeof(struct tlob_task) },
                .end = end,
        };
}

void task_table_done(TaskTable *table) {
        bpf_memory_done(&table->memory);
        *table = (TaskTable) {};
}

static struct tlob_task *task_at(const TaskTable *table, size_t slot) {
        return (struct tlob_task *) table->memory.values + slot;
}

/*
 * Is there such a slot, which is or was in use? Then it is mapped. Returns 1, 0, or a negative
 * errno.
 */
static int table_has(TaskTable *table, size_t slot) {
        size_t end = __atomic_load_n(table->end, __ATOMIC_RELAXED);
        int r;

        if (end > table->memory.n)
                end = table->memory.n;
        if (slot >= end)
                return 0;
        r = slot < table->memory.n_mapped ? 0 : bpf_memory_reach(&table->memory, end);
        return r < 0 ? r : 1;
}

bool task_table_has_process(TaskTable *table, uint32_t pid) {
        for (size_t i = 0; table_has(table, i) > 0; i++) {
                const struct tlob_task *t = task_at(table, i);

                if (__atomic_load_n(&t->task, __ATOMIC_RELAXED) &&
                    !__atomic_load_n(&t->owner, __ATOMIC_RELAXED) &&
                    __atomic_load_n(&t->pid, __ATOMIC_RELAXED) == pid)
                        return true;
        }
        return false;
}

static unsigned task_count(const struct tlob_task *task, uint64_t generation) {
        unsigned n = 0;

        for (size_t i = 0; i < TLOB_WINDOWS_MAX; i++)
                n += __atomic_load_n(&task->open[i], __ATOMIC_RELAXED) == generation;
        return n;
}

int task_table_count(TaskTable *table, uint64_t generation, uint64_t *ret) {
        uint64_t n = 0;
        int r;

        for (size_t i = 0; (r = table_has(table, i)) > 0; i++)
                n += task_count(task_at(table, i), generation);
        if (r >= 0)
                *ret = n;
        return r;
}

int task_table_visit(TaskTable *table, uint64_t generation, TaskTableVisitor visitor,
                     void *userdata) {
        int r;

        for (size_t i = 0; (r = table_has(table, i)) > 0; i++) {
                if (task_count(task_at(table, i), generation) > 0)
                        r = visitor((uint32_t) i, userdata);
                if (r < 0)
                        return r;
        }
        return r;
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

/* As holder_find() of the programs, but for who has the CPU now: that is credited to nobody yet. */
static Peer read_holder(const struct tlob_task *t, const struct tlob_window *w,
                        uint64_t waiting_ns) {
        for (size_t i = 0; i < TLOB_HOLDERS_MAX; i++) {
                uint64_t ns = __atomic_load_n(&t->holder_ns[i], __ATOMIC_RELAXED);

                if (t->holders[i].since_ns < w->start_ns)
                        ns = ns > w->holder_ns[i] ? ns - w->holder_ns[i] : 0;
                if (waiting_ns > 0 && 2 * ns > waiting_ns)
                        return record_read_peer(&t->holders[i].peer);
        }
        return (Peer) {};
}

static void window_read(const struct tlob_task *t, const struct tlob_window *w, Report *ret) {
        uint64_t totals[TLOB_N_STATES];
        uint32_t state;

        *ret = (Report) {
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
        if (t->task == TLOB_TASK_OF_KEY) {
                ret->cgroup_id = t->keyed.cgroup_id;
                memcpy(ret->comm, t->keyed.comm, sizeof(t->keyed.comm));
                report_forget_states(ret);
        } else
                ret->peers.preempted_by = read_holder(t, w, ret->spent_ns[TLOB_WAITING]);
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

static void task_end(struct tlob_task *t, uint64_t generation, TaskTableHandler handler,
                     void *userdata) {
        uint32_t elsewhere = __atomic_load_n(&t->elsewhere, __ATOMIC_RELAXED);

        for (size_t i = 0; i < TLOB_WINDOWS_MAX; i++) {
                Report report;
                uint64_t claim = window_take(t, i, generation, &report);

                if (claim != TLOB_CLAIM_CLOSED)
                        handler(&report, claim, elsewhere >> i & 1, userdata);
        }
}

int task_table_end(TaskTable *table, uint64_t generation, TaskTableHandler handler,
                   void *userdata) {
        int r;

        for (size_t i = 0; (r = table_has(table, i)) > 0; i++)
                task_end(task_at(table, i), generation, handler, userdata);
        return r;
}
