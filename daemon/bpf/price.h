/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_PRICE_H
#define BPF_PRICE_H

#include <stdint.h>

#include "bpf/detacher.h"
#include "elf/probe-kind.h"

/*
 * What a hit of a probe costs whoever runs into it, and a timer whoever has the CPU, on this
 * machine: found out by trying.
 */

typedef struct Price {
        ProbePrices hit;    /* with what is done for a window */
        uint64_t window_ns; /* that alone, for one of its ends */
        uint64_t timer_ns;  /* set, and having come; 0: not known */
} Price;

/*
 * Calls a function of our own some hundred times with and without probes of that program on it. The
 * cookie must be no site's. multi: as in UprobeSpec. What fails is not known then.
 */
void price_find(Price *price, int prog_fd, bool multi, Detacher *detacher);

#endif
