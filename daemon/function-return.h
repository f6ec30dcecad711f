/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FUNCTION_RETURN_H
#define FUNCTION_RETURN_H

#include <stddef.h>
#include <stdint.h>

/*
 * Where the one return instruction of a function is, in bytes from its beginning. 0 when control can
 * leave it there and nowhere else; else -EOPNOTSUPP, and *ret_reason says what stands against it, as
 * the end of a sentence about the function; static.
 */
int function_find_return(const uint8_t *code, size_t size, size_t *ret_offset,
                         const char **ret_reason);

#endif
