/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_LANES_H
#define BPF_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "bpf/layout.h"
#include "bpf/memory.h"
#include "report/violation.h"

/*
 * The pages of processes that have joined, each with a lane for each of its threads
 * (tlob-mark-page.h), as memory that is shared with them and with the programs: what their threads
 * have counted there and the programs have not put into the books yet.
 */

typedef struct LaneMaps {
        int pages;     /* the map of that name, and so on; not owned */
        int processes; /* pages_by_process */
        int holders;   /* lane_holders */
} LaneMaps;

typedef struct LanePage {
        struct tlob_lane *lanes; /* NULL: no process has it */
        uint32_t pid;
} LanePage;

typedef struct LaneTable {
        LaneMaps maps;
        LanePage *pages;
        size_t n;
        size_t n_used;
        BpfMemory holders; /* of all lanes of the pages that were ever given away */
        uint32_t *n_known; /* what the programs know of n_used; not owned */
} LaneTable;

/* Here and below: returns 0 or a negative errno. After an error, lane_table_done() is due. */
int lane_table_init(LaneTable *table, size_t n, const LaneMaps *maps, uint32_t *n_known);
void lane_table_done(LaneTable *table);

/* The pages that a daemon before this one has given away. */
int lane_table_inherit(LaneTable *table);

/* Puts the page that is that map in its place. It waits for a grace period: for a worker. */
int lane_page_place(int pages_fd, uint32_t index, int map_fd);
int lane_page_new(void);

/* After that: the process has that page, which becomes the table's. */
int lane_table_add(LaneTable *table, uint32_t index, uint32_t pid, int map_fd);

/* It has it no longer. What is in its lanes must have been settled. */
void lane_table_remove(LaneTable *table, uint32_t index);

/* The page of a process; SIZE_MAX: it has none. */
size_t lane_table_find(const LaneTable *table, uint32_t pid);

/* Is any lane of that page held? */
bool lane_table_is_in_use(const LaneTable *table, uint32_t index);

/*
 * Adds what the lanes have of the binding of that generation. They change meanwhile: what was read
 * is right together with the books if lane_table_moment() says the same before and after both, and
 * not LANES_UNSETTLED.
 */
void lane_table_read(const LaneTable *table, uint64_t generation, Statistics *statistics);
void lane_table_read_lengths(const LaneTable *table, uint64_t generation, Histogram *histogram);

#define LANES_UNSETTLED UINT64_MAX
uint64_t lane_table_moment(const LaneTable *table);

/* The longest of them is forgotten. */
void lane_table_forget_longest(const LaneTable *table, uint64_t generation);

/* Windows of that binding from now on are nobody's. */
void lane_table_withdraw(const LaneTable *table, uint64_t generation);

/* Its budgets are others. */
void lane_table_set_budget(const LaneTable *table, uint64_t generation,
                           const uint64_t budget_ns[static TLOB_N_BUDGETS]);

/* The next window of each thread traps: who wants to know of it may have changed. */
void lane_table_recall(const LaneTable *table);

#endif
