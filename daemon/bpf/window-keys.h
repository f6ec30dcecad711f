/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_WINDOW_KEYS_H
#define BPF_WINDOW_KEYS_H

#include <stdint.h>

#include "elf/argument.h"

/*
 * What tells the windows of a binding apart that other threads may end: for the programs, in the
 * map key_places. It is there until another binding has that index. Returns 0 or a negative errno.
 */
int window_keys_write(int map_fd, uint32_t binding, const ElfArgumentPlaces *start,
                      const ElfArgumentPlaces *stop);

#endif
