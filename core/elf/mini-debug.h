/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_MINI_DEBUG_H
#define ELF_MINI_DEBUG_H

#include <libelf.h>
#include <stdbool.h>

/*
 * Unpacks .gnu_debugdata: an ELF file, compressed by xz, with the names of functions that .dynsym
 * does not have. Both results are the caller's, and the first one ends before the second one is
 * freed. False: there is none that can be used.
 */
bool mini_debug_open(Elf *elf, Elf **ret, void **ret_image);

#endif
