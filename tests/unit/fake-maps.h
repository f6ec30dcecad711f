/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FAKE_MAPS_H
#define FAKE_MAPS_H

#include <stddef.h>

/*
 * Hash maps without a kernel, for modules that use libbpf's bpf_map_*_elem(): the program that
 * links this has these instead of libbpf's. What has no room, or no such number, aborts.
 */

#define FAKE_MAPS_FIRST 1000 /* no real descriptor is that high */

/* Empties all of them. */
void fake_maps_reset(void);

/* Returns the number of a new one, to be used as a descriptor. */
int fake_map_make(size_t key_size, size_t value_size);

/* How many keys it has. */
size_t fake_map_count(int fd);

#endif
