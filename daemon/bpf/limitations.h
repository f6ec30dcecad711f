/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_LIMITATIONS_H
#define BPF_LIMITATIONS_H

#include <stdbool.h>

#include "bpf/price.h"
#include "bpf/programs.h"

/*
 * What the BPF back end cannot promise on this machine, and what went wrong so far, as sentences.
 */

#define LIMITATIONS_MAX 14
#define LIMITATION_MAX  160

typedef struct Limitations {
        const char *sentences[LIMITATIONS_MAX + 1]; /* NULL after the last */
        char texts[LIMITATIONS_MAX][LIMITATION_MAX];
} Limitations;

/*
 * As of now. has_pins: probes do not have to be taken away one by one when the daemon dies, as they
 * are where each is a perf event (seen on 6.1). has_user_events: events that programs write are, or
 * were, measured. The result is owned by limitations, and valid until the next call.
 */
const char *const *limitations_update(Limitations *limitations, const BpfPrograms *programs,
                                      const Price *price, bool has_pins, bool has_user_events);

#endif
