/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* What libFuzzer calls with each input. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As assert(), which a release build may lack. */
#define fuzz_assert(x)                                                                             \
        do {                                                                                       \
                if (!(x))                                                                          \
                        abort();                                                                   \
        } while (0)

#endif
