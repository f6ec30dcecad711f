/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_PRICE_H
#define BPF_PRICE_H

#include <stdint.h>

#include "bpf/detacher.h"
#include "bpf/programs.h"
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
 * Calls functions of our own some hundred times with and without probes of the programs on them.
 * What fails is not known then.
 */
void price_find(Price *price, const BpfPrograms *programs, Detacher *detacher);

#endif
