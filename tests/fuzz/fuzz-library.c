/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Any bytes as an ld.so.cache: a path that is found is a string inside it. */

#include "base/cleanup.h"
#include "elf/library.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *path = library_cache_lookup(data, size, "libx.so.1");

        fuzz_assert(!path || (path[0] == '/' &&
                              (size_t) (path - (const char *) data) + strlen(path) < size));
        return 0;
}
