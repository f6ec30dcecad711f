/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_LAYOUT_HASH_H
#define BPF_LAYOUT_HASH_H

#include <stdint.h>

/*
 * Of the types of what is in the maps. Programs for which it is the same of all maps can use each
 * other's; if it is the same of the books, they can read what others have counted.
 */
typedef struct LayoutHash {
        uint64_t all;
        uint64_t books;
} LayoutHash;

/* Zeros if memory is short. Of a build it is always the same, and made once. */
LayoutHash bpf_layout_hash(void);

#endif
