/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "kernel-symbols.h"

#include <inttypes.h>
#include <stdio.h>

#include "cleanup.h"

int kernel_interrupt_entry(uint64_t *ret_begin, uint64_t *ret_end) {
        _cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
        uint64_t begin = 0, end = 0;
        char line[1024], name[256];

        if (!f)
                return -ENXIO;

        while (!end && fgets(line, sizeof(line), f)) {
                uint64_t address;

                if (sscanf(line, "%" SCNx64 " %*c %255s", &address, name) != 2)
                        continue;
                /* On x86 the entries of exceptions come first, in the same place. */
                if (streq(name, "__irqentry_text_start") || streq(name, "asm_common_interrupt"))
                        begin = address;
                else if (streq(name, "__irqentry_text_end"))
                        end = address;
        }
        if (begin == 0 || end <= begin)
                return -ENXIO;

        *ret_begin = begin;
        *ret_end = end;
        return 0;
}
