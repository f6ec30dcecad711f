/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_SKELETON_H
#define BPF_SKELETON_H

#include <stdint.h>

#include "bpf/layout.h"
#include "tlob.skel.h"

/*
 * The BPF object that is built into the daemon. Whoever opens it does so here: each file that calls
 * tlob_bpf__open() itself brings a copy of the object with it.
 */

/* NULL, with errno, on failure. */
struct tlob_bpf *skeleton_open(void);

/*
 * As tlob_bpf__load(), with the variables of the programs in memory, also where they are in maps of
 * a predecessor.
 */
int skeleton_load(struct tlob_bpf *bpf);

/* Of all that is in it. */
uint64_t skeleton_hash(void);

/*
 * It will not be read for a long time: gives back the memory that reading it has taken. It is read
 * from the daemon's own file again when that is needed after all.
 */
void skeleton_leave(void);

#endif
