/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_ARM64_CODE_H
#define ELF_ARM64_CODE_H

#include "elf/function-code.h"

/* As function_code_read(), for code of arm64, on whatever machine it is looked at. */
int arm64_code_read(const uint8_t *code, size_t size, uint64_t address, FunctionCode *ret,
                    const char **ret_reason);

#endif
