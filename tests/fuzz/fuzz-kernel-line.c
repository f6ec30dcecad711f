/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Any text as what the kernel's monitor says of its bindings. */

#include "fuzz.h"
#include "kernel/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(kernel_lines_done) KernelLines lines = {};
        _cleanup_free_ char *text = strndup((const char *) data, size);

        fuzz_assert(text && kernel_lines_parse(text, &lines) == 0);
        for (size_t i = 0; i < lines.n; i++) {
                const KernelLine *line = &lines.items[i];

                fuzz_assert(*line->text && !strchr(line->text, '\n'));
                fuzz_assert(!line->path || (line->path[0] == '/' && !strchr(line->path, ' ')));
                fuzz_assert(!line->path || !line->name ||
                            (*line->name && !strchr(line->name, ' ')));
                fuzz_assert(!line->path || kernel_lines_find(&lines, line));
        }
        return 0;
}
