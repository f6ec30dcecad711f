/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * daemon/bpf/tasks.c: windows are found and ended in every slot that was ever in use, and no more
 * of the table is mapped than that takes. The table is a file in memory.
 */

#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bpf/layout.h"
#include "bpf/tasks.h"
#include "test.h"

#define N_SLOTS    1000
#define GENERATION 7

typedef struct Slots {
        int fd;
        struct tlob_task *tasks;
        uint32_t end;
        TaskTable table;
        uint32_t visited[4];
        size_t n_visited;
        size_t n_ended;
        size_t n_elsewhere; /* of these */
} Slots;

static int set_up(void **state) {
        size_t size = N_SLOTS * sizeof(struct tlob_task);
        Slots *slots = calloc(1, sizeof(*slots));

        assert_non_null(slots);
        slots->fd = memfd_create("tasks", MFD_CLOEXEC);
        assert_true(slots->fd >= 0);
        assert_ok(ftruncate(slots->fd, (off_t) size));
        slots->tasks = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, slots->fd, 0);
        assert_true(slots->tasks != MAP_FAILED);
        task_table_init(&slots->table, slots->fd, N_SLOTS, &slots->end);
        *state = slots;
        return 0;
}

static int tear_down(void **state) {
        Slots *slots = *state;

        task_table_done(&slots->table);
        (void) munmap(slots->tasks, N_SLOTS * sizeof(*slots->tasks));
        safe_close(slots->fd);
        free(slots);
        return 0;
}

/* As a program does: the slot is in use before the window is open. */
static void open_window(Slots *slots, uint32_t slot, size_t place, uint64_t generation) {
        struct tlob_task *t = &slots->tasks[slot];
        struct tlob_window *w = &t->windows[place];

        if (slots->end <= slot)
                slots->end = slot + 1;
        t->last_ns = t->last_ns ?: now_ns();
        w->start_ns = t->last_ns;
        t->state = TLOB_SLEEPING;
        w->claim = TLOB_CLAIM_OPEN(w->start_ns);
        t->open[place] = generation;
}

static uint64_t count(Slots *slots) {
        uint64_t n = UINT64_MAX;

        assert_ok(task_table_count(&slots->table, GENERATION, &n));
        return n;
}

static int on_slot(uint32_t slot, void *userdata) {
        Slots *slots = userdata;

        assert_true(slots->n_visited < ELEMENTSOF(slots->visited));
        slots->visited[slots->n_visited++] = slot;
        return 0;
}

static void on_end(Report *report, uint64_t claim, bool is_elsewhere, void *userdata) {
        Slots *slots = userdata;

        assert_int_not_equal(claim, TLOB_CLAIM_CLOSED);
        assert_int_equal(report->elapsed_ns, report->spent_ns[TLOB_SLEEPING]);
        slots->n_ended++;
        slots->n_elsewhere += is_elsewhere;
}

static void test_mapped_as_used(void **state) {
        Slots *slots = *state;

        assert_int_equal(count(slots), 0);
        assert_int_equal(slots->table.memory.n_mapped, 0);
        open_window(slots, 0, 0, GENERATION);
        assert_int_equal(count(slots), 1);
        assert_true(slots->table.memory.n_mapped < N_SLOTS / 4);
        open_window(slots, N_SLOTS / 2, 1, GENERATION);
        assert_int_equal(count(slots), 2);
        assert_true(slots->table.memory.n_mapped > N_SLOTS / 2);
        open_window(slots, N_SLOTS - 1, 7, GENERATION);
        assert_int_equal(count(slots), 3);
        assert_int_equal(slots->table.memory.n_mapped, N_SLOTS);
        /* Whatever the programs say. */
        slots->end = UINT32_MAX;
        assert_int_equal(count(slots), 3);
}

static void test_visit(void **state) {
        Slots *slots = *state;

        open_window(slots, 3, 0, GENERATION);
        open_window(slots, 3, 1, GENERATION);
        open_window(slots, 4, 0, GENERATION + 1);
        open_window(slots, 900, 2, GENERATION);
        assert_ok(task_table_visit(&slots->table, GENERATION, on_slot, slots));
        assert_int_equal(slots->n_visited, 2);
        assert_int_equal(slots->visited[0], 3);
        assert_int_equal(slots->visited[1], 900);
}

static void test_end(void **state) {
        Slots *slots = *state;

        open_window(slots, 1, 0, GENERATION);
        open_window(slots, 1, 1, GENERATION + 1);
        open_window(slots, 700, 3, GENERATION);
        open_window(slots, 700, 5, GENERATION);
        slots->tasks[700].elsewhere = 1 << 3;
        assert_ok(task_table_end(&slots->table, GENERATION, on_end, slots));
        assert_int_equal(slots->n_ended, 3);
        assert_int_equal(slots->n_elsewhere, 1);
        assert_int_equal(count(slots), 0);
        assert_int_equal(slots->tasks[1].open[1], GENERATION + 1);
}

/* None is ended, and that is said: then it can be done later. */
static void test_not_mapped(void **state) {
        Slots *slots = *state;
        int fd = slots->table.memory.map_fd;
        uint64_t n;

        open_window(slots, 0, 0, GENERATION);
        slots->table.memory.map_fd = -EBADF;
        assert_int_equal(task_table_count(&slots->table, GENERATION, &n), -EBADF);
        assert_int_equal(task_table_end(&slots->table, GENERATION, on_end, slots), -EBADF);
        assert_int_equal(slots->n_ended, 0);
        slots->table.memory.map_fd = fd;
        assert_ok(task_table_end(&slots->table, GENERATION, on_end, slots));
        assert_int_equal(slots->n_ended, 1);
}

static void on_keyed_end(Report *report, uint64_t claim, bool is_elsewhere, void *userdata) {
        Slots *slots = userdata;

        assert_int_equal(report->state, TLOB_N_STATES);
        assert_true(report->elapsed_ns >= 1000000);
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                assert_true(report->spent_ns[i] == STATISTIC_UNKNOWN);
        assert_string_equal(report->comm, "sixteen letters!");
        assert_int_equal(report->cgroup_id, 77);
        slots->n_ended++;
}

/* One that belongs to no task: what it did meanwhile is not known. */
static void test_keyed(void **state) {
        Slots *slots = *state;
        struct tlob_task *t = &slots->tasks[3];

        t->last_ns = now_ns() - 1000000;
        open_window(slots, 3, 0, GENERATION);
        t->task = TLOB_TASK_OF_KEY;
        t->state = TLOB_N_STATES;
        t->keyed.cgroup_id = 77;
        memcpy(t->keyed.comm, "sixteen letters!", sizeof(t->keyed.comm));
        assert_int_equal(count(slots), 1);
        assert_int_equal(task_table_end(&slots->table, GENERATION, on_keyed_end, slots), 0);
        assert_int_equal(slots->n_ended, 1);
        assert_int_equal(count(slots), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_mapped_as_used, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_visit, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_end, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_not_mapped, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_keyed, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
