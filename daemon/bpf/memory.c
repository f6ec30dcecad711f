/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bpf/memory.h"

#include <bpf/bpf.h>
#include <sys/mman.h>

/* So many values are mapped at least: a few pages. */
#define MAPPED_MIN 64

int bpf_memory_map(int map_fd, size_t n, size_t value_size, void **ret) {
        void *p;

        p = mmap(NULL, n * value_size, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
        if (p == MAP_FAILED)
                return -errno;
        *ret = p;
        return 0;
}

int bpf_memory_reach(BpfMemory *memory, size_t end) {
        size_t n = MAPPED_MIN;
        void *values;
        int r;

        if (end <= memory->n_mapped || memory->n_mapped == memory->n)
                return 0;
        while (n < end)
                n *= 2;
        if (n > memory->n)
                n = memory->n;
        r = bpf_memory_map(memory->map_fd, n, memory->value_size, &values);
        if (r < 0)
                return r;
        bpf_memory_done(memory);
        memory->values = values;
        memory->n_mapped = n;
        return 0;
}

void bpf_memory_done(BpfMemory *memory) {
        bpf_memory_unmap(memory->values, memory->n_mapped, memory->value_size);
        memory->values = NULL;
        memory->n_mapped = 0;
}

bool bpf_memory_fits(int map_fd, uint32_t type, size_t value_size) {
        struct bpf_map_info info = {};
        uint32_t length = sizeof(info);

        return bpf_obj_get_info_by_fd(map_fd, &info, &length) >= 0 && info.type == type &&
               info.key_size == sizeof(uint32_t) && info.value_size == value_size;
}

void bpf_memory_unmap(void *memory, size_t n, size_t value_size) {
        if (memory)
                (void) munmap(memory, n * value_size);
}
