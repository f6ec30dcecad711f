/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The object lies in the daemon's own file, and is read a few times when the back end is set up:
 * what reading has brought into memory is no longer needed then.
 */

#include "bpf/skeleton.h"

#include <sys/mman.h>

#include "bpf/kept.h"

struct tlob_bpf *skeleton_open(void) {
        return tlob_bpf__open();
}

uint64_t skeleton_hash(void) {
        size_t size;
        const void *object = tlob_bpf__elf_bytes(&size);

        return kept_hash(object, size);
}

void skeleton_leave(void) {
        size_t size, page = (size_t) sysconf(_SC_PAGESIZE);
        uintptr_t begin = (uintptr_t) tlob_bpf__elf_bytes(&size), end = begin + size;

        /* Only whole pages: what lies beside it is in use. */
        begin = (begin + page - 1) & ~(page - 1);
        end &= ~(page - 1);
        if (begin < end)
                (void) madvise((void *) begin, end - begin, MADV_DONTNEED);
}
