/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KEEP_H
#define KEEP_H

/*
 * Opens a directory of a BPF file system that belongs to root alone, and makes it if only its last
 * component is missing. path: absolute. No other process gets it as long as the descriptor is open,
 * or a copy of it. Returns 0, or a negative errno with a sentence, or -ENOMEM.
 */
int keep_open(const char *path, int *ret_fd, char **ret_reason);

#endif
