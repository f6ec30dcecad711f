/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* What programs of units are there for, and whose files are meant where they start containers. */

/* Is it a program that runs others in containers, and is the main process of a unit itself? */
bool program_starts_containers(const char *program);

/* Is it systemd itself, in a process that is on its way to become the program of a unit? */
bool program_is_not_begun(const char *path);

/* Is it one that is the first of a container, and starts what that is for? */
bool program_is_init(const char *program);

/*
 * Is *found, the process of a container that was found so far (0: none), or that one, the better
 * one to ask for the files of the container? Returns true if no other can be better.
 */
bool container_choose_process(uint32_t *found, uint32_t pid);

#endif
