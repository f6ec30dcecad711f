/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Most programs are there in several variants: for the ways to attach them, and for who may arm
 * timers (the rungs of the ladder of deadlines). One that a kernel does not know would fail all
 * others with it.
 */

#include "bpf/variants.h"

#include "base/cleanup.h"
#include "bpf/uprobe.h"

/* The start's program for a rung. */
struct bpf_program *variant_start(const struct tlob_bpf *bpf, bool multi, DeadlineMode mode) {
        switch (mode) {
        case DEADLINE_UPROBE:
                return bpf->progs.start_multi_arm;
        case DEADLINE_FENTRY:
                return multi ? bpf->progs.start_multi_bridge : bpf->progs.start_perf_bridge;
        default:
                return multi ? bpf->progs.start_multi : bpf->progs.start_perf;
        }
}

struct bpf_program *variant_stop(const struct tlob_bpf *bpf, bool multi) {
        return multi ? bpf->progs.stop_multi : bpf->progs.stop_perf;
}

struct bpf_program *variant_unwind(const struct tlob_bpf *bpf, bool multi) {
        return multi ? bpf->progs.unwind_multi : bpf->progs.unwind_perf;
}

/* Only those that are needed: a program that this kernel does not know would fail them all. */
static void select_programs(const struct tlob_bpf *bpf, bool multi, DeadlineMode mode) {
        struct bpf_program *const all[] = {
                bpf->progs.start_perf,         bpf->progs.start_multi,
                bpf->progs.start_multi_arm,    bpf->progs.start_perf_bridge,
                bpf->progs.start_multi_bridge, bpf->progs.stop_perf,
                bpf->progs.stop_multi,         bpf->progs.unwind_perf,
                bpf->progs.unwind_multi,
        };

        for (size_t i = 0; i < ELEMENTSOF(all); i++) {
                bool needed = all[i] == variant_start(bpf, multi, mode) ||
                              all[i] == variant_stop(bpf, multi) ||
                              all[i] == variant_unwind(bpf, multi);

                (void) bpf_program__set_autoload(all[i], needed);
                if (needed && multi)
                        uprobe_multi_prepare(all[i]);
        }
}

/*
 * Kernels that let programs of every kind arm timers are those that preempt programs on tracepoints
 * (Linux 7.0), but not those on perf events.
 */
struct bpf_program *variant_call(const struct tlob_bpf *bpf, DeadlineMode mode) {
        return mode == DEADLINE_UPROBE ? bpf->progs.on_call_perf : bpf->progs.on_call;
}

struct bpf_program *variant_call_end(const struct tlob_bpf *bpf, DeadlineMode mode) {
        return mode == DEADLINE_UPROBE ? bpf->progs.on_call_end_perf : bpf->progs.on_call_end;
}

/* The programs for events of the kernel, and for those that are probes in programs. */
struct bpf_program *variant_event_start(const struct tlob_bpf *bpf, DeadlineMode mode) {
        return mode == DEADLINE_UPROBE ? bpf->progs.event_start_arm : bpf->progs.event_start;
}

struct bpf_program *variant_event_probe_start(const struct tlob_bpf *bpf, DeadlineMode mode) {
        return mode == DEADLINE_UPROBE ? bpf->progs.start_perf_arm : bpf->progs.start_perf;
}

static void select_only(const struct tlob_bpf *bpf, struct bpf_program *const *needed, size_t n) {
        struct bpf_program *program;

        bpf_object__for_each_program(program, bpf->obj)(void)
                bpf_program__set_autoload(program, false);
        for (size_t i = 0; i < n; i++)
                (void) bpf_program__set_autoload(needed[i], true);
}

void variants_select_events(const struct tlob_bpf *bpf, DeadlineMode mode) {
        struct bpf_program *const needed[] = {
                variant_event_start(bpf, mode),
                variant_event_probe_start(bpf, mode),
                bpf->progs.event_stop,
                bpf->progs.stop_perf,
        };

        select_only(bpf, needed, ELEMENTSOF(needed));
}

void variants_select_user_events(const struct tlob_bpf *bpf, DeadlineMode mode) {
        struct bpf_program *const needed[] = { bpf->progs.on_sample };

        select_only(bpf, needed, ELEMENTSOF(needed));
}

void variants_select_calls(const struct tlob_bpf *bpf, DeadlineMode mode) {
        struct bpf_program *const needed[] = {
                variant_call(bpf, mode),
                variant_call_end(bpf, mode),
        };

        select_only(bpf, needed, ELEMENTSOF(needed));
}

void variants_select(const struct tlob_bpf *bpf, bool multi, DeadlineMode mode, bool preemptible) {
        struct bpf_program *const late[] = {
                bpf->progs.on_call,        bpf->progs.on_call_end,      bpf->progs.on_call_perf,
                bpf->progs.event_start,    bpf->progs.event_start_arm,  bpf->progs.event_stop,
                bpf->progs.start_perf_arm, bpf->progs.on_call_end_perf, bpf->progs.on_sample,
        };

        select_programs(bpf, multi, mode);
        for (size_t i = 0; i < ELEMENTSOF(late); i++)
                (void) bpf_program__set_autoload(late[i], false);
        (void) bpf_program__set_autoload(bpf->progs.on_exit_again, preemptible);
        (void) bpf_program__set_autoload(bpf->progs.on_exec_again, preemptible);
}
