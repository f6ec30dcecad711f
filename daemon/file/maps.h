/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILE_MAPS_H
#define FILE_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "binding/binding.h"

/* A file as it is seen in /proc/PID/maps. */
typedef struct MappedFile {
        MappedIdentity identity;
        const char *path; /* as the process sees it: it may be mapped under another identity */
        dev_t device;     /* with inode: as the file at that path has it; inode 0: any counts */
        ino_t inode;
        bool path_is_others; /* another file is at that path now */
        bool wants_old;      /* who has mapped what was at that path before counts, too */
} MappedFile;

/* Who has mapped it. */
typedef struct FileMaps {
        unsigned n_processes; /* that were looked at */
        unsigned n_lines;     /* that were read of them */
        bool is_mapped;       /* by one of them */
        bool is_replaced;     /* one has mapped a file that was at that path, and is deleted */
        OldProgram old;       /* the first whose program that is */
} FileMaps;

/* Looks at one process. Returns 0, -ENOENT or -ESRCH if it is gone, another negative errno. */
int file_maps_of_process(uint32_t pid, const MappedFile *file, FileMaps *maps);

/*
 * Looks at the processes of a cgroup and of those below, until what is wanted is known. 0 or a
 * negative errno.
 */
int file_maps_of_cgroup(const char *cgroup_path, const MappedFile *file, FileMaps *maps);

/*
 * If nobody was found, and it is the program of its unit: a program that the unit has mounted for
 * itself (ExecPaths=) loses that mount when it is replaced, and has no path any more. Then the main
 * process tells.
 */
void file_maps_of_main_program(const Binding *binding, FileMaps *maps);

/*
 * Counts the processes of the machine that have mapped it, and those of them that are not in that
 * cgroup or below it: a template's stands for all its instances; NULL: all are outside. 0 or a
 * negative errno.
 */
int file_maps_count(const MappedFile *file, const char *cgroup_path, FileUsers *ret);

/*
 * Is path that cgroup, or below it? A template's, "/a.slice/foo@.service", has all instances below
 * it.
 */
bool file_maps_cgroup_has(const char *cgroup_path, const char *path);

#endif
