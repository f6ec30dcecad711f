/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_CHANGED_CODE_H
#define ELF_CHANGED_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Is the instruction that a process has in memory another one than its file has at the same place,
 * and not because of a probe or breakpoint? Of what is behind it, either may be anything. False
 * also where the instructions are not known.
 */
bool code_is_changed(const uint8_t *file, const uint8_t *memory, size_t size);

#endif
