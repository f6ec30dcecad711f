/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Processes write to their pages as they like: whatever is read there is a number of their own
 * binding, and nothing else. For which binding it is, is in memory that they cannot write to.
 */

#include "bpf/lanes.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bpf/memory.h"
#include "bpf/opts.h"

int lane_table_init(LaneTable *table, size_t n, const LaneMaps *maps, uint32_t *n_known) {
        *table = (LaneTable) {
                .maps = *maps,
                .n_known = n_known,
                .holders = { .map_fd = maps->holders,
                             .n = n * TLOB_LANES,
                             .value_size = sizeof(struct tlob_lane_holder) },
        };
        if (n == 0)
                return 0;
        table->pages = calloc(n, sizeof(*table->pages));
        if (!table->pages)
                return -ENOMEM;
        table->n = n;
        return 0;
}

static void unmap_page(LanePage *page) {
        bpf_memory_unmap(page->lanes, TLOB_LANES, sizeof(*page->lanes));
        *page = (LanePage) {};
}

void lane_table_done(LaneTable *table) {
        for (size_t i = 0; i < table->n; i++)
                unmap_page(&table->pages[i]);
        free(table->pages);
        bpf_memory_done(&table->holders);
        *table = (LaneTable) {};
}

int lane_page_new(void) {
        struct bpf_map_create_opts opts;
        int fd;

        opts_init(&opts);
        opts.map_flags = BPF_F_MMAPABLE;
        fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "page", sizeof(uint32_t), sizeof(struct tlob_lane),
                            TLOB_LANES, &opts);
        return fd < 0 ? -errno : fd;
}

int lane_page_place(int pages_fd, uint32_t index, int map_fd) {
        return bpf_map_update_elem(pages_fd, &index, &map_fd, BPF_ANY) < 0 ? -errno : 0;
}

static void tell_n(LaneTable *table) {
        __atomic_store_n(table->n_known, (uint32_t) table->n_used, __ATOMIC_RELEASE);
}

static int take_page(LaneTable *table, uint32_t index, uint32_t pid, int map_fd) {
        void *lanes;
        int r;

        r = bpf_memory_reach(&table->holders, ((size_t) index + 1) * TLOB_LANES);
        if (r >= 0)
                r = bpf_memory_map(map_fd, TLOB_LANES, sizeof(struct tlob_lane), &lanes);
        if (r < 0)
                return r;
        table->pages[index] = (LanePage) { .lanes = lanes, .pid = pid };
        table->n_used++;
        tell_n(table);
        return 0;
}

static struct tlob_lane_holder *holders_of(const LaneTable *table, size_t page) {
        return (struct tlob_lane_holder *) table->holders.values + page * TLOB_LANES;
}

/* Nobody takes it for another page of that process: those are milliseconds apart at least. */
static void tag_page(LaneTable *table, uint32_t index) {
        uint32_t tag = (uint32_t) (now_ns() / 1000) & TLOB_LANE_TAG_MAX;

        for (size_t i = 0; i < TLOB_LANES; i++) {
                holders_of(table, index)[i].tag = tag;
                table->pages[index].lanes[i].tag = tag;
        }
}

int lane_table_add(LaneTable *table, uint32_t index, uint32_t pid, int map_fd) {
        int r;

        r = take_page(table, index, pid, map_fd);
        if (r < 0)
                return r;
        tag_page(table, index);
        if (bpf_map_update_elem(table->maps.processes, &pid, &index, BPF_ANY) < 0) {
                r = -errno;
                lane_table_remove(table, index);
        }
        return r;
}

void lane_table_remove(LaneTable *table, uint32_t index) {
        LanePage *page = &table->pages[index];
        uint32_t known;

        if (!page->lanes)
                return;
        if (bpf_map_lookup_elem(table->maps.processes, &page->pid, &known) >= 0 && known == index)
                (void) bpf_map_delete_elem(table->maps.processes, &page->pid);
        unmap_page(page);
        table->n_used--;
        tell_n(table);
}

static int inherit_page(LaneTable *table, uint32_t pid, uint32_t index) {
        _cleanup_close_ int map_fd = -EBADF;
        uint32_t id;

        if (index >= table->n || table->pages[index].lanes ||
            bpf_map_lookup_elem(table->maps.pages, &index, &id) < 0)
                return -ESTALE;
        map_fd = bpf_map_get_fd_by_id(id);
        if (map_fd < 0)
                return -errno;
        if (!bpf_memory_fits(map_fd, BPF_MAP_TYPE_ARRAY, sizeof(struct tlob_lane)))
                return -ESTALE;
        return take_page(table, index, pid, map_fd);
}

int lane_table_inherit(LaneTable *table) {
        uint32_t pid, index, *previous = NULL, last;

        while (bpf_map_get_next_key(table->maps.processes, previous, &pid) == 0) {
                if (bpf_map_lookup_elem(table->maps.processes, &pid, &index) >= 0) {
                        int r = inherit_page(table, pid, index);

                        if (r < 0)
                                return r;
                }
                last = pid;
                previous = &last;
        }
        return 0;
}

size_t lane_table_find(const LaneTable *table, uint32_t pid) {
        for (size_t i = 0; i < table->n; i++)
                if (table->pages[i].lanes && table->pages[i].pid == pid)
                        return i;
        return SIZE_MAX;
}

bool lane_table_is_in_use(const LaneTable *table, uint32_t index) {
        for (size_t i = 0; i < TLOB_LANES; i++)
                if (__atomic_load_n(&holders_of(table, index)[i].task, __ATOMIC_RELAXED))
                        return true;
        return false;
}

/* Calls the visitor for each lane in which a mark is, or was, for the binding of a generation. */
static void visit(const LaneTable *table, uint64_t generation,
                  void (*visitor)(struct tlob_lane *lane, size_t mark, void *userdata),
                  void *userdata) {
        for (size_t page = 0; page < table->n; page++) {
                struct tlob_lane *lanes = table->pages[page].lanes;

                for (size_t i = 0; lanes && i < TLOB_LANES; i++)
                        for (size_t mark = 0; mark < TLOB_LANE_MARKS; mark++) {
                                const struct tlob_lane_grant *grant =
                                        &holders_of(table, page)[i].grants[mark];

                                if (__atomic_load_n(&grant->generation, __ATOMIC_RELAXED) ==
                                    generation)
                                        visitor(&lanes[i], mark, userdata);
                        }
        }
}

static uint64_t get(const unsigned long long *p) {
        return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static void set(unsigned long long *p, uint64_t to) {
        __atomic_store_n(p, to, __ATOMIC_RELEASE);
}

static void read_mark(struct tlob_lane *lane, size_t mark, void *userdata) {
        const struct tlob_lane_mark *m = &lane->marks[mark];
        Statistics *statistics = userdata;
        Counters *c = &statistics->counters;
        uint64_t n = 0;

        /* One that has ended is in the lengths, and so in all, or in none. */
        for (size_t i = 0; i < TLOB_LANE_BUCKETS; i++)
                n += get(&lane->lengths[mark][i]);
        c->starts += n;
        c->in_budget += n;
        c->untrapped += n;
        c->nested += __atomic_load_n(&m->nested, __ATOMIC_RELAXED);
        c->spent_ns[TLOB_RUNNING] += get(&m->total_ns);
        c->elapsed_ns += get(&m->total_ns);
        if (get(&m->longest_ns) > statistics->max_ns)
                statistics->max_ns = get(&m->longest_ns);
}

void lane_table_read(const LaneTable *table, uint64_t generation, Statistics *statistics) {
        visit(table, generation, read_mark, statistics);
}

static void read_lengths(struct tlob_lane *lane, size_t mark, void *userdata) {
        Histogram *histogram = userdata;

        for (size_t i = 0; i < TLOB_LANE_BUCKETS; i++)
                histogram->counts[i] += get(&lane->lengths[mark][i]);
}

void lane_table_read_lengths(const LaneTable *table, uint64_t generation, Histogram *histogram) {
        visit(table, generation, read_lengths, histogram);
}

uint64_t lane_table_moment(const LaneTable *table) {
        uint64_t begun = 0, done = 0;

        for (size_t page = 0; page < table->n; page++)
                for (size_t i = 0; table->pages[page].lanes && i < TLOB_LANES; i++) {
                        done += __atomic_load_n(&holders_of(table, page)[i].done, __ATOMIC_ACQUIRE);
                        begun += __atomic_load_n(&holders_of(table, page)[i].begun,
                                                 __ATOMIC_ACQUIRE);
                }
        return begun == done ? begun : LANES_UNSETTLED;
}

static void forget_longest(struct tlob_lane *lane, size_t mark, void *userdata) {
        set(&lane->marks[mark].longest_ns, 0);
}

void lane_table_forget_longest(const LaneTable *table, uint64_t generation) {
        visit(table, generation, forget_longest, NULL);
}

static void withdraw(struct tlob_lane *lane, size_t mark, void *userdata) {
        set(&lane->marks[mark].until_ns, 0);
        set(&lane->marks[mark].budget_ns, 0);
}

void lane_table_withdraw(const LaneTable *table, uint64_t generation) {
        visit(table, generation, withdraw, NULL);
}

static void set_budget(struct tlob_lane *lane, size_t mark, void *userdata) {
        const uint64_t *budget_ns = userdata;

        /* One of another kind may have come with it: that is for the next trap to find. */
        set(&lane->marks[mark].until_ns, 0);
        if (get(&lane->marks[mark].budget_ns))
                set(&lane->marks[mark].budget_ns, *budget_ns);
}

void lane_table_set_budget(const LaneTable *table, uint64_t generation,
                           const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        uint64_t budget = budget_ns[TLOB_BUDGET_TOTAL] < budget_ns[TLOB_BUDGET_RUNNING]
                                  ? budget_ns[TLOB_BUDGET_TOTAL]
                                  : budget_ns[TLOB_BUDGET_RUNNING];

        visit(table, generation, set_budget, &budget);
}

void lane_table_recall(const LaneTable *table) {
        for (size_t page = 0; page < table->n; page++)
                for (size_t i = 0; table->pages[page].lanes && i < TLOB_LANES; i++)
                        for (size_t mark = 0; mark < TLOB_LANE_MARKS; mark++)
                                set(&table->pages[page].lanes[i].marks[mark].until_ns, 0);
}
