/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_RELOCATION_H
#define ELF_RELOCATION_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * What the dynamic linker writes to address, less where the program has been loaded: the file
 * itself has a zero there. False if nothing says that it writes such a thing.
 */
bool relocation_find_relative(Elf *elf, uint64_t address, uint64_t *ret);

#endif
