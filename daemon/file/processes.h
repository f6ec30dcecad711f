/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILE_PROCESSES_H
#define FILE_PROCESSES_H

#include <stdint.h>
#include <stdio.h>

/* A file of /proc/PID, for reading; NULL: errno says why not. */
FILE *process_open_file(uint32_t pid, const char *name);

/* Returns 0 to be given the next one, 1: that is enough, or a negative errno. */
typedef int (*ProcessVisitor)(uint32_t pid, void *userdata);

/*
 * Goes through the processes of a cgroup and of those below, each cgroup's own first: some hundreds
 * of them at most. Returns what the visitor has returned last, or another negative errno.
 */
int processes_of_cgroup(const char *cgroup_path, ProcessVisitor visit, void *userdata);

/*
 * The process whose files are meant in a cgroup in which a container runs: the outermost that is
 * the first of its own. 0: there is none.
 */
uint32_t process_of_container(const char *cgroup_path);

#endif
