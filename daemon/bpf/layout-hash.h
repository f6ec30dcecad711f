/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_LAYOUT_HASH_H
#define BPF_LAYOUT_HASH_H

#include <stdint.h>

/*
 * Of the types of all that is in the maps: programs for which it is the same can use each other's.
 * Returns 0 if memory is short.
 */
uint64_t bpf_layout_hash(void);

#endif
