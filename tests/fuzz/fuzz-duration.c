/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Any text as a time span; what is accepted must survive being written and read again. */

#include "base/cleanup.h"
#include "base/duration.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = strndup((const char *) data, size);
        char buf[DURATION_MAX];
        uint64_t ns, back;

        fuzz_assert(text);
        if (duration_parse(text, &ns) < 0)
                return 0;
        fuzz_assert(duration_parse(duration_format(ns, buf), &back) == 0 && back == ns);
        fuzz_assert(*duration_format_short(ns, buf) != '\0');
        fuzz_assert(*duration_format_like(ns, ns / 7, buf) != '\0');
        return 0;
}
