/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_READ_H
#define ELF_READ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reads size bytes of a file from that offset on. Returns how many there were, fewer than size only
 * at the end of the file, or a negative errno.
 */
ssize_t elf_read(int fd, void *data, size_t size, uint64_t offset);

#endif
