/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Any bytes as the code of a function. */

#include "function-return.h"

#include "cleanup.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *reason = NULL;
        size_t offset;
        int r;

        r = function_find_return(data, size, &offset, &reason);
        fuzz_assert(r == 0 ? offset < size : r == -EOPNOTSUPP && reason);
        return 0;
}
