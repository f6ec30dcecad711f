/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Files by which bindings are told apart where the monitor's events do not: a task runs one program, so of
 * two bindings on different programs at most one is its. A library can be in any of them.
 */

#include "kernel-file.h"

#include <sys/stat.h>

int kernel_file_from_elf(ElfFile *elf, KernelFile *ret) {
        struct stat st;

        if (fstat(elf_file_fd(elf), &st) < 0)
                return -errno;
        *ret = (KernelFile){
                .device = st.st_dev,
                .inode = st.st_ino,
                .is_program = elf_file_is_program(elf),
        };
        return 0;
}

KernelFile kernel_file_from_path(const char *path) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ char *error = NULL;
        KernelFile file = {};

        if (path && elf_file_open(path, &elf, &error) >= 0)
                (void) kernel_file_from_elf(elf, &file);
        return file;
}

int kernel_file_from_task(uint32_t tid, KernelFile *ret) {
        char path[64];
        struct stat st;

        (void) snprintf(path, sizeof(path), "/proc/%u/exe", tid);
        if (stat(path, &st) < 0)
                return -errno;
        *ret = (KernelFile){ .device = st.st_dev, .inode = st.st_ino, .is_program = true };
        return 0;
}

static bool is_same(const KernelFile *a, const KernelFile *b) {
        return a->device == b->device && a->inode == b->inode;
}

bool kernel_file_overlaps(const KernelFile *a, const KernelFile *b) {
        return !a->is_program || !b->is_program || is_same(a, b);
}

bool kernel_file_is_run_by(const KernelFile *file, const KernelFile *program) {
        return !program || !file->is_program || is_same(file, program);
}
