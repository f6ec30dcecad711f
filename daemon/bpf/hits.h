/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_HITS_H
#define BPF_HITS_H

#include <stddef.h>
#include <stdint.h>

/* Maps in which programs count hits on each CPU (tlob_hits). */

/* Of all CPUs; n_before if that cannot be read. */
uint64_t hits_read(int map_fd, uint32_t key, size_t n_cpus, uint64_t n_before);

/* Returns 0 or a negative errno. */
int hits_clear(int map_fd, uint32_t key, size_t n_cpus);

/*
 * How fast TLOB_HITS_LOOK hits of that price may come on one CPU before they are many: when they
 * cost more than a twentieth of this machine's CPUs.
 */
uint64_t hits_get_pace(uint64_t price_ns);

#endif
