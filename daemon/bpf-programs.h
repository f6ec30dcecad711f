/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_PROGRAMS_H
#define BPF_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "tlob-bridge.skel.h"
#include "tlob.skel.h"

/*
 * The BPF programs in the kernel: loaded in the variants that this kernel takes, with their maps
 * ready for use, and nothing attached.
 */

typedef struct BpfPrograms {
        struct tlob_bpf *bpf;           /* NULL: not loaded */
        struct tlob_bridge_bpf *bridge; /* with DEADLINE_FENTRY, else NULL */
        bool multi;                     /* the uprobe programs are for uprobe_multi links */
        bool stack_from_task;           /* a timer can take the stack of its task */
        DeadlineMode mode;              /* the rung of the ladder that was reached */
        uint64_t interrupt_entry_begin; /* where interrupts enter the kernel; both 0: not known */
        uint64_t interrupt_entry_end;
        unsigned root_level; /* depth of the root of our cgroup namespace in the kernel's tree */
} BpfPrograms;

/* Loads them. Returns 0 or a negative errno; bpf_programs_done() is due in any case. */
int bpf_programs_load(BpfPrograms *programs, const BackendConfig *config);
void bpf_programs_done(BpfPrograms *programs);

/* The programs for probes. */
int bpf_programs_start_fd(const BpfPrograms *programs);
int bpf_programs_stop_fd(const BpfPrograms *programs);

/* Makes the timer of a slot look at its windows soon: their budgets have changed. */
int bpf_programs_check_slot(const BpfPrograms *programs, uint32_t slot);

#endif
