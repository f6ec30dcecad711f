/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_PROGRAMS_H
#define BPF_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "bpf/kept.h"
#include "bpf/kernel-symbols.h"
#include "bpf/pins.h"
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
        bool preemptible;      /* programs on tracepoints are (Linux 7.0): uprobes may arm timers */
        bool by_process;       /* such links can be limited to a process */
        bool stack_from_task;  /* a timer can take the stack of its task */
        bool has_calls;        /* this kernel tells of system calls */
        int64_t preempt_count; /* where it counts interrupts, 0: it does not tell */
        bool sets_registers;   /* of tasks on probes: return instructions are not stepped */
        Pins *pins;            /* not owned; NULL: there are none */
        bool pinned;           /* all maps and hooks are */
        bool inherits;         /* the maps of a predecessor */
        DeadlineMode mode;     /* the rung of the ladder that was reached */
        struct tlob_symbols symbols;
        unsigned root_level; /* depth of the root of our cgroup namespace in the kernel's tree */
} BpfPrograms;

/* Room for sites of a kind: one of each binding, and the one that its predecessor had. */
static inline size_t bpf_programs_sites_max(const BackendConfig *config) {
        return 2 * (size_t) config->bindings_max;
}

/*
 * Loads them. pins: where maps and hooks are pinned; NULL: nowhere. inherited: what a predecessor
 * has pinned there is taken over, of which that is the format; NULL: there is nothing. Returns 0 or
 * a negative errno; bpf_programs_done() is due in any case.
 */
int bpf_programs_load(BpfPrograms *programs, const BackendConfig *config, Pins *pins,
                      const KeptFormat *inherited);

/*
 * Sees to the hooks, which tell of what tasks do. inherited: as above; those of the same programs
 * go on, and of others are replaced, which the format says then. Returns 0 or a negative errno.
 */
int bpf_programs_attach(BpfPrograms *programs, KeptFormat *inherited);

/* What a successor must have in common with these. */
void bpf_programs_get_format(const BpfPrograms *programs, const BackendConfig *config,
                             KeptFormat *ret);

/* Can programs that are not loaded yet go on with what has that format? */
bool bpf_programs_fit(const KeptFormat *format, const BackendConfig *config);
void bpf_programs_done(BpfPrograms *programs);

/* The programs for probes. */
int bpf_programs_start_fd(const BpfPrograms *programs);
int bpf_programs_stop_fd(const BpfPrograms *programs);
int bpf_programs_unwind_fd(const BpfPrograms *programs);

/* Do the types of a kernel say that it tells of system calls in a way that can be used here? */
struct btf;
bool bpf_programs_find_calls(const struct btf *btf);

/* Makes the timer of a slot look at its windows soon: their budgets have changed. */
int bpf_programs_check_slot(const BpfPrograms *programs, uint32_t slot);

/* After windows with a key were ended from outside, or check_slot(). */
int bpf_programs_tend_keyed(const BpfPrograms *programs);

/* Of a page whose process has gone: its lanes are empty, and nobody has them. */
int bpf_programs_settle_page(const BpfPrograms *programs, uint32_t page);

#endif
