/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_FILE_H
#define KERNEL_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "binding/binding.h"
#include "file/files.h"

/* Which file a binding is on, as far as a task can be told to run it. */
typedef struct KernelFile {
        dev_t device;
        ino_t inode;
        bool is_program;       /* whoever runs it runs no other; else it may be anywhere */
        MappedIdentity mapped; /* the same in /proc/PID/maps, if that is known */
} KernelFile;

/* Of a resolved binding. */
KernelFile kernel_file_of_binding(const Binding *binding, const BindingFile *file);

/* What cannot be read, or not at once, may be anything: no file, and no program. */
KernelFile kernel_file_from_path(Files *files, const char *path);

/*
 * Which file that is: path, from fd on, or fd for "". Not is_program. By what the kernel remembers:
 * the file system need not answer. Returns 0 or a negative errno.
 */
int kernel_file_stat(int fd, const char *path, KernelFile *ret, unsigned *ret_links);

/* Does that path, as we see it, lead to the file that fd has open? */
bool kernel_file_is_at(int fd, const char *path);

/* The program that a task runs. 0, or a negative errno: it is gone. */
int kernel_file_from_task(uint32_t tid, KernelFile *ret);

bool kernel_file_equal(const KernelFile *a, const KernelFile *b);

/* Can a task be in both of them? */
bool kernel_file_overlaps(const KernelFile *a, const KernelFile *b);

/* Can a task that runs this program be in the file? program NULL: any program. */
bool kernel_file_is_run_by(const KernelFile *file, const KernelFile *program);

#endif
