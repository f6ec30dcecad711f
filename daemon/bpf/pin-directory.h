/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_PIN_DIRECTORY_H
#define BPF_PIN_DIRECTORY_H

#include <dirent.h>

/*
 * Directories for pins (pins.h) in a BPF file system that others have, too: they and all in them
 * outlive this process, until they are removed. keep_fd: of the directory that they are in, which
 * nobody else writes to.
 */

/* A new one. Returns its descriptor or a negative errno. */
int pin_directory_make(int keep_fd);

/*
 * The last one that is complete, with what has made it so. Returns 0, -ENOENT, or another negative
 * errno; the descriptors are the caller's.
 */
int pin_directory_find(int keep_fd, int *ret_fd, int *ret_state_fd);

/*
 * From now on a successor finds it. state_fd: of a map. Returns 0 or a negative errno.
 */
int pin_directory_complete(int fd, int state_fd);

/* All pins in it go away in the background, and so does it; it can also be the only one. */
void pin_directory_remove(int fd);

/* The same for those beside it. */
void pin_directory_remove_others(int fd);

/* Any directory, from its first entry. NULL, with errno. */
DIR *pin_directory_read(int fd);

/* A path for libbpf: the kernels before 6.5 take no directory beside the name. */
typedef struct PinPath {
        char text[64];
} PinPath;

PinPath pin_directory_path(int fd, const char *name);

#endif
