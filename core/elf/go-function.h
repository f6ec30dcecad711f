/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_GO_FUNCTION_H
#define ELF_GO_FUNCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/exits.h"
#include "elf/file.h"

/* Does a function of Go begin at that address? */
bool go_function_is_at(const ElfFile *elf, uint64_t address);

/*
 * As function_find_exits(), of the function of Go at that address. Besides its ways out, it finds
 * where in the runtime a goroutine leaves its thread.
 */
int go_function_find_exits(const ElfFile *elf, uint64_t address, FunctionExits *ret,
                           const char **ret_reason);

#endif
