/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bpf/hits.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bpf/layout.h"

#define MANY 20

uint64_t hits_read(int map_fd, uint32_t key, size_t n_cpus, uint64_t n_before) {
        _cleanup_free_ struct tlob_hits *hits = NULL;
        uint64_t n = 0;

        hits = calloc(n_cpus, sizeof(*hits));
        if (!hits || bpf_map_lookup_elem(map_fd, &key, hits) < 0)
                return n_before;
        for (size_t cpu = 0; cpu < n_cpus; cpu++)
                n += hits[cpu].n;
        return n;
}

int hits_clear(int map_fd, uint32_t key, size_t n_cpus) {
        _cleanup_free_ struct tlob_hits *hits = NULL;

        hits = calloc(n_cpus, sizeof(*hits));
        if (!hits)
                return -ENOMEM;
        return bpf_map_update_elem(map_fd, &key, hits, BPF_ANY);
}

uint64_t hits_get_pace(uint64_t price_ns) {
        long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);

        return TLOB_HITS_LOOK * price_ns * MANY * (uint64_t) (n_cpus > 0 ? n_cpus : 1);
}
