/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_HOOKS_H
#define BPF_HOOKS_H

#include "bpf/layout.h"
#include "bpf/pins.h"
#include "tlob.skel.h"

/*
 * The hooks: programs on the scheduler's tracepoints, which tell of what tasks do. Pinned, they go
 * on without us. A set of them has a number, and one set acts: that whose number is in
 * hooks_acting, a variable of theirs.
 */

/* Before loading: gives them a number of their own. Without inherited maps they act. */
void hooks_prepare(struct tlob_bpf *bpf);

/*
 * Attaches them, and lets them act from then on. pins: NULL: there are none. *ret_pinned: they go
 * on without us. Returns 0 or a negative errno.
 */
int hooks_attach(struct tlob_bpf *bpf, const Pins *pins, bool *ret_pinned);

/* Those that are pinned go away, but for those that act. */
void hooks_remove_others(const struct tlob_bpf *bpf, const Pins *pins);

#endif
