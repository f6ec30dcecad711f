/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_FILE_H
#define KERNEL_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "elf-file.h"

/* Which file a binding is on, as far as a task can be told to run it. */
typedef struct KernelFile {
        dev_t device;
        ino_t inode;
        bool is_program; /* whoever runs it runs no other; else it may be anywhere */
} KernelFile;

int kernel_file_from_elf(ElfFile *elf, KernelFile *ret);

/* What cannot be read may be anything: no file, and no program. */
KernelFile kernel_file_from_path(const char *path);

/* The program that a task runs. 0, or a negative errno: it is gone. */
int kernel_file_from_task(uint32_t tid, KernelFile *ret);

/* Can a task be in both of them? */
bool kernel_file_overlaps(const KernelFile *a, const KernelFile *b);

/* Can a task that runs this program be in the file? program NULL: any program. */
bool kernel_file_is_run_by(const KernelFile *file, const KernelFile *program);

#endif
