/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bpf/memory.h"

#include <sys/mman.h>

int bpf_memory_map(int map_fd, size_t n, size_t value_size, void **ret) {
        void *p;

        p = mmap(NULL, n * value_size, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
        if (p == MAP_FAILED)
                return -errno;
        *ret = p;
        return 0;
}

void bpf_memory_unmap(void *memory, size_t n, size_t value_size) {
        if (memory)
                (void) munmap(memory, n * value_size);
}
