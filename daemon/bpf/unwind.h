/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_UNWIND_H
#define BPF_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/crowd.h"
#include "bpf/detacher.h"
#include "bpf/uprobe.h"

/*
 * Probes on the functions that leave frames behind (longjmp(), exceptions), as long as a binding
 * measures a function: its windows end when that is done. They are in the processes that have had
 * such a window, or, where the kernel cannot limit probes to processes, in all.
 */

typedef struct UnwindSpec {
        int prog_fd;     /* as in UprobeSpec */
        bool multi;      /* the same */
        bool by_process; /* the kernel can limit probes to processes */
        Pins *pins;      /* as in UprobeSpec */
        Detacher *detacher;
        uint32_t *epoch;  /* in the programs' memory: see process.bpf.h */
        int processes_fd; /* the map of processes that were told */
} UnwindSpec;

typedef struct UnwindTable {
        UnwindSpec spec; /* all stays the caller's */
        size_t n_users;
        uint32_t last_epoch;
        struct UnwindPlace *places;
        size_t n_places;
        struct UnwindProcess *processes;
        size_t n_processes;
        uint32_t round;
        Crowd crowd;
        Crowd owned_crowds[OWNED_CROWDS];
        size_t n_owned;
        bool is_wide; /* the probes of the places are set, in all processes */
} UnwindTable;

void unwind_table_init(UnwindTable *table, const UnwindSpec *spec);

/* Detaches what is left. */
void unwind_table_done(UnwindTable *table);

/*
 * For one more binding that measures a function. What is not there, or cannot be probed, is left
 * out. Returns 0 or -ENOMEM.
 */
int unwind_table_join(UnwindTable *table);

/* One less. The last one takes the probes along, for the detacher to take out of the kernel. */
void unwind_table_leave(UnwindTable *table);

/*
 * A process that could unwind, as the programs told; more than once changes nothing. If there are
 * too many, all on the machine get the probes; those in which a user measures do not count for
 * that, and get none. And one that has exited.
 */
void unwind_table_add_process(UnwindTable *table, const struct tlob_process_record *record);
void unwind_table_remove_process(UnwindTable *table, uint32_t tgid);

/* From the one to the other all that exist are added: those that were not do not any more. */
void unwind_table_begin_round(UnwindTable *table);
void unwind_table_end_round(UnwindTable *table);

#endif
