/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The kernel takes longest to verify the programs on system calls and on events: a quarter of the
 * time in which all are loaded. So these are not loaded with the others, but by an object of their
 * own, which is the same but for which of its programs are loaded.
 */

#include "bpf/late-programs.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "bpf/skeleton.h"
#include "bpf/variants.h"

void late_programs_init(LatePrograms *late, const BpfPrograms *programs) {
        *late = (LatePrograms) { .programs = programs };
}

void late_programs_done(LatePrograms *late) {
        tlob_bpf__destroy(late->user_events);
        tlob_bpf__destroy(late->events);
        tlob_bpf__destroy(late->calls);
        *late = (LatePrograms) {};
}

/* All maps but constants, which are copies. */
static int share_maps(struct tlob_bpf *bpf, const struct tlob_bpf *from) {
        struct bpf_map *map;
        int r = 0;

        bpf_object__for_each_map(map, bpf->obj) {
                const struct bpf_map *other;

                if (map == bpf->maps.rodata)
                        continue;
                other = bpf_object__find_map_by_name(from->obj, bpf_map__name(map));
                r = other ? bpf_map__reuse_fd(map, bpf_map__fd(other)) : -ENOENT;
                if (r < 0)
                        return r;
        }
        memcpy(bpf->rodata, from->rodata, sizeof(*bpf->rodata));
        return 0;
}

/* NULL, with errno, on failure. */
static struct tlob_bpf *load(const LatePrograms *late,
                             void (*select)(const struct tlob_bpf *bpf, DeadlineMode mode)) {
        struct tlob_bpf *bpf;
        int r;

        bpf = skeleton_open();
        if (!bpf)
                return NULL;
        select(bpf, late->programs->mode);
        r = share_maps(bpf, late->programs->bpf);
        if (r >= 0)
                r = skeleton_load(bpf);
        /* As after the others have been loaded. */
        (void) malloc_trim(0);
        skeleton_leave();
        if (r >= 0)
                return bpf;
        tlob_bpf__destroy(bpf);
        errno = -r;
        return NULL;
}

int late_programs_get_calls(LatePrograms *late, struct bpf_program **ret_begin,
                            struct bpf_program **ret_end) {
        if (!late->calls)
                late->calls = load(late, variants_select_calls);
        if (!late->calls)
                return -errno;
        *ret_begin = variant_call(late->calls, late->programs->mode);
        *ret_end = variant_call_end(late->calls, late->programs->mode);
        return 0;
}

int late_programs_get_events(LatePrograms *late, uint32_t side, EventProgramFds *ret) {
        DeadlineMode mode = late->programs->mode;
        const struct tlob_bpf *bpf;

        if (late->programs->preempt_count == 0)
                return -EOPNOTSUPP;
        if (!late->events)
                late->events = load(late, variants_select_events);
        bpf = late->events;
        if (!bpf)
                return -errno;
        if (side == 0)
                *ret = (EventProgramFds) {
                        .event = bpf_program__fd(variant_event_start(bpf, mode)),
                        .probe = bpf_program__fd(variant_event_probe_start(bpf, mode)),
                };
        else
                *ret = (EventProgramFds) {
                        .event = bpf_program__fd(bpf->progs.event_stop),
                        .probe = bpf_program__fd(bpf->progs.stop_perf),
                };
        return 0;
}

int late_programs_get_user_events(LatePrograms *late, struct bpf_program **ret) {
        if (!late->user_events)
                late->user_events = load(late, variants_select_user_events);
        if (!late->user_events)
                return -errno;
        *ret = late->user_events->progs.on_sample;
        return 0;
}
