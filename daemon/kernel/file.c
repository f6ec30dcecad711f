/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Files by which bindings are told apart where the monitor's events do not: a task runs one
 * program, so of two bindings on different programs at most one is its. A library can be in any of
 * them.
 */

#include "kernel/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

KernelFile kernel_file_of_binding(const Binding *binding, const BindingFile *file) {
        return (KernelFile) {
                .device = binding->resolved.device,
                .inode = binding->resolved.inode,
                .is_program = file->is_program,
                .mapped = binding->resolved.mapped,
        };
}

KernelFile kernel_file_from_path(Files *files, const char *path) {
        KernelFile file = {}, found = {};

        if (path &&
            files_identify(files, path, &found.device, &found.inode, &found.is_program) >= 0)
                file = found;
        return file;
}

int kernel_file_stat(int fd, const char *path, KernelFile *ret, unsigned *ret_links) {
        struct statx st;

        if (statx(fd, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_NLINK, &st) < 0)
                return -errno;
        *ret = (KernelFile) {
                .device = makedev(st.stx_dev_major, st.stx_dev_minor),
                .inode = st.stx_ino,
        };
        *ret_links = st.stx_nlink;
        return 0;
}

bool kernel_file_is_at(int fd, const char *path) {
        KernelFile file, there;
        unsigned links;

        return kernel_file_stat(fd, "", &file, &links) >= 0 &&
               kernel_file_stat(AT_FDCWD, path, &there, &links) >= 0 &&
               kernel_file_equal(&file, &there);
}

int kernel_file_from_task(uint32_t tid, KernelFile *ret) {
        KernelFile file;
        unsigned links;
        char path[64];
        int r;

        (void) snprintf(path, sizeof(path), "/proc/%u/exe", tid);
        r = kernel_file_stat(AT_FDCWD, path, &file, &links);
        if (r < 0)
                return r;
        file.is_program = true;
        *ret = file;
        return 0;
}

bool kernel_file_equal(const KernelFile *a, const KernelFile *b) {
        return a->device == b->device && a->inode == b->inode;
}

bool kernel_file_overlaps(const KernelFile *a, const KernelFile *b) {
        return !a->is_program || !b->is_program || kernel_file_equal(a, b);
}

bool kernel_file_is_run_by(const KernelFile *file, const KernelFile *program) {
        return !program || !file->is_program || kernel_file_equal(file, program);
}
