/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_VARIANTS_H
#define BPF_VARIANTS_H

#include <stdbool.h>

#include "backend/backend.h"
#include "bpf/layout.h"
#include "tlob.skel.h"

/* Which of the programs in the object a kernel is given. Nothing is loaded or attached here. */

/*
 * Those that are always needed, and no others, are loaded. multi: probes are uprobe_multi links;
 * mode: the rung of the ladder of deadlines that is tried; preemptible: programs on tracepoints can
 * be preempted.
 */
void variants_select(const struct tlob_bpf *bpf, bool multi, DeadlineMode mode, bool preemptible);

/* Only those on system calls, on events of the kernel, or on events that programs write. */
void variants_select_calls(const struct tlob_bpf *bpf, DeadlineMode mode);
void variants_select_events(const struct tlob_bpf *bpf, DeadlineMode mode);
void variants_select_user_events(const struct tlob_bpf *bpf, DeadlineMode mode);

/* For probes. */
struct bpf_program *variant_start(const struct tlob_bpf *bpf, bool multi, DeadlineMode mode);
struct bpf_program *variant_stop(const struct tlob_bpf *bpf, bool multi);
struct bpf_program *variant_unwind(const struct tlob_bpf *bpf, bool multi);

/* For system calls. */
struct bpf_program *variant_call(const struct tlob_bpf *bpf, DeadlineMode mode);
struct bpf_program *variant_call_end(const struct tlob_bpf *bpf, DeadlineMode mode);

/* For the start at events of the kernel, and at those that are probes in programs. */
struct bpf_program *variant_event_start(const struct tlob_bpf *bpf, DeadlineMode mode);
struct bpf_program *variant_event_probe_start(const struct tlob_bpf *bpf, DeadlineMode mode);

#endif
