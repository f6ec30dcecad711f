/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_USER_EVENTS_H
#define BPF_USER_EVENTS_H

#include <stdint.h>

#include "bpf/late-programs.h"
#include "bpf/pins.h"
#include "bpf/uprobe.h"

/*
 * Events that programs write, between which is measured: the perf events of each, and the program
 * that is told of all of them, which comes with the first and goes with the daemon.
 */

typedef struct UserEvents {
        LatePrograms *late; /* NULL: not set up */
        Pins *pins;         /* NULL: there are none */
        size_t n_cpus;
        PinnedLink program;
} UserEvents;

/* late and pins stay the caller's. n_cpus: that there can be. */
void user_events_init(UserEvents *events, LatePrograms *late, Pins *pins, size_t n_cpus);
void user_events_done(UserEvents *events);

/*
 * From now on the event of that number tells of the site with that cookie. side: as in
 * tlob_process_site. Returns 0 or a negative errno.
 */
int user_events_attach(UserEvents *events, uint64_t number, uint32_t side, uint64_t cookie,
                       Uprobe **ret);

#endif
