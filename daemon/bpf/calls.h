/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_CALLS_H
#define BPF_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/detacher.h"
#include "bpf/late-programs.h"
#include "bpf/pins.h"
#include "bpf/programs.h"

/*
 * System calls that are measured, or between which is, and the pair of programs that tells of them:
 * attached with the first such call, and gone with the last.
 */

typedef struct Calls {
        const BpfPrograms *programs; /* NULL: not set up, and nothing is to be done */
        LatePrograms *late;
        Pins *pins; /* NULL: there are none */
        size_t n_cpus;
        unsigned n;              /* sites of ours */
        uint64_t n_hits_before;  /* when the pair of ours came, or its price has changed */
        uint64_t cost_before_ns; /* from the former to the latter */
        Detacher *leaving;       /* takes pairs of ours out of the kernel; NULL: there was none */
        PinnedLink begin;
        PinnedLink end;
} Calls;

/* late and pins stay the caller's. */
void calls_init(Calls *calls, LatePrograms *late, Pins *pins, size_t n_cpus);
void calls_done(Calls *calls);

/*
 * From now on the call of that number tells of the site with that cookie, in that role; again:
 * changes nothing. Returns 0 or a negative errno: -EOPNOTSUPP if this kernel cannot do it.
 */
int calls_attach(Calls *calls, enum tlob_call_role role, uint64_t number, uint64_t cookie);

/* Undoes it, if it was done. */
void calls_detach(Calls *calls, enum tlob_call_role role, uint64_t number);

/*
 * What the pair has cost all calls of the machine, besides what is done for those that are
 * measured, since it was attached; 0: that cannot be read, or no call is measured.
 */
uint64_t calls_get_cost(const Calls *calls);

/*
 * The sites of the daemon before this one count until calls_drop_inherited(). was_complete: it had
 * sites for all of its bindings, else those of the one before it count.
 */
void calls_inherit(Calls *calls, bool was_complete);
void calls_drop_inherited(Calls *calls);

#endif
