/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The object lies in the daemon's own file, and is read a few times when the back end is set up:
 * what reading has brought into memory is no longer needed then.
 */

#include "bpf/skeleton.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/mman.h>

#include "bpf/kept.h"

struct tlob_bpf *skeleton_open(void) {
        return tlob_bpf__open();
}

/* In the place of what they were to begin with. */
static int map_variables(const struct bpf_map *map, void *memory) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE), size = bpf_map__value_size(map);

        void *mapped;

        if (!memory)
                return 0;
        size = (size + page - 1) & ~(page - 1);
        mapped = mmap(memory, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                      bpf_map__fd(map), 0);
        return mapped == MAP_FAILED ? -errno : 0;
}

/*
 * From 1.5 on, libbpf maps no variables of maps that were there before: what it gives is memory of
 * its own, which nobody shares.
 */
int skeleton_load(struct tlob_bpf *bpf) {
        int r;

        r = tlob_bpf__load(bpf);
        if (r >= 0)
                r = map_variables(bpf->maps.bss, bpf->bss);
        return r < 0 ? r : map_variables(bpf->maps.data, bpf->data);
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
