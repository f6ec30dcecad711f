/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_MEMORY_H
#define BPF_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* The values of an array map as memory that is shared with the BPF programs (BPF_F_MMAPABLE). */

/* value_size must be a multiple of 8. Returns 0 or a negative errno. */
int bpf_memory_map(int map_fd, size_t n, size_t value_size, void **ret);

/*
 * The first values of such a map. The kernel counts each page that is mapped as memory of the
 * daemon, in use or not, and of most maps nearly nothing is in use.
 */
typedef struct BpfMemory {
        int map_fd; /* not owned */
        size_t n;   /* values of the map */
        size_t value_size;
        size_t n_mapped;
        void *values; /* NULL: nothing is mapped yet */
} BpfMemory;

/*
 * Maps the values below end, as far as there are any, and some more, so that that happens a few
 * times only. All of them may lie elsewhere then. Returns 0 or a negative errno, and then all is as
 * it was.
 */
int bpf_memory_reach(BpfMemory *memory, size_t end);
void bpf_memory_done(BpfMemory *memory);

/*
 * Is it a map of that type, with values of that size? The kernel writes as much as a map says that
 * it has: to be asked of one that comes from somebody else before it is read.
 */
bool bpf_memory_fits(int map_fd, uint32_t type, size_t value_size);

/* memory may be NULL. */
void bpf_memory_unmap(void *memory, size_t n, size_t value_size);

#endif
