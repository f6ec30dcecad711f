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
 * Is it a map of that type, with values of that size? The kernel writes as much as a map says that
 * it has: to be asked of one that comes from somebody else before it is read.
 */
bool bpf_memory_fits(int map_fd, uint32_t type, size_t value_size);

/* memory may be NULL. */
void bpf_memory_unmap(void *memory, size_t n, size_t value_size);

#endif
