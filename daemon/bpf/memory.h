/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_MEMORY_H
#define BPF_MEMORY_H

#include <stddef.h>

#include "base/cleanup.h"

/* The values of an array map as memory that is shared with the BPF programs (BPF_F_MMAPABLE). */

/* value_size must be a multiple of 8. Returns 0 or a negative errno. */
int bpf_memory_map(int map_fd, size_t n, size_t value_size, void **ret);

/* memory may be NULL. */
void bpf_memory_unmap(void *memory, size_t n, size_t value_size);

#endif
