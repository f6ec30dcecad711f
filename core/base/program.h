/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/root.h"

/*
 * What programs of units are there for, what their processes run, and whose files are meant where
 * they start containers.
 */

/*
 * The path of what a process runs, as /proc shows it: with " (deleted)" if it is not there any
 * more, and with any bytes. Returns 0 or a negative errno; the caller frees it.
 */
int program_of_process(uint32_t pid, char **ret);

/*
 * The tree that a process has begun its program in: its root, unless it has gone deeper since, as
 * programs do that lock themselves in. Then its files are those of this process, or of what systemd
 * has started it in. Returns as root_of_process() does.
 */
int root_of_program(uint32_t pid, Root *ret);

/*
 * Its effective user, also where that user may not look into it. (uid_t) -1: there is no such
 * process.
 */
uid_t user_of_process(uint32_t pid);

/* Is it a program that runs others in containers, and is the main process of a unit itself? */
bool program_starts_containers(const char *program);

/* Is it systemd itself, in a process that is on its way to become the program of a unit? */
bool program_is_not_begun(const char *path);

/* Is it one that is the first of a container, and starts what that is for? */
bool program_is_init(const char *program);

/* Is it a scope that such a program makes for a container? Others have any processes of a user. */
bool unit_is_scope_of_container(const char *unit);

/* The process whose files are those of a container. */
typedef struct ContainerProcess {
        uint32_t pid;   /* 0: none was found so far */
        unsigned depth; /* of its namespace of processes below ours */
} ContainerProcess;

/*
 * Is that one better, or the first: the first process in a namespace of its own, with a root of its
 * own, and of such, the outermost? Returns true if no other can be better.
 */
bool container_choose_process(ContainerProcess *found, uint32_t pid);

#endif
