/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_LATE_PROGRAMS_H
#define BPF_LATE_PROGRAMS_H

#include "bpf/programs.h"

/*
 * The programs that most daemons never need: those on system calls, and those on events of the
 * kernel or of programs. They are loaded when the first binding wants them, and use the maps of the
 * others.
 */
typedef struct LatePrograms {
        const BpfPrograms *programs; /* the caller's; NULL: not set up */
        struct tlob_bpf *calls;      /* NULL: not loaded */
        struct tlob_bpf *events;     /* the same */
        struct tlob_bpf *user_events;
} LatePrograms;

void late_programs_init(LatePrograms *late, const BpfPrograms *programs);
void late_programs_done(LatePrograms *late);

/* The pair on all system calls. Here and below: returns 0 or a negative errno. */
int late_programs_get_calls(LatePrograms *late, struct bpf_program **ret_begin,
                            struct bpf_program **ret_end);

/* For starts and stops at events of the kernel, and at those that are probes in programs. */
typedef struct EventProgramFds {
        int event;
        int probe;
} EventProgramFds;

/* side: as in tlob_process_site. -EOPNOTSUPP: this kernel has none. */
int late_programs_get_events(LatePrograms *late, uint32_t side, EventProgramFds *ret);

/* For both, at events that programs write. */
int late_programs_get_user_events(LatePrograms *late, struct bpf_program **ret);

#endif
