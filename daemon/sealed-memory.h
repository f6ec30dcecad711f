/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SEALED_MEMORY_H
#define SEALED_MEMORY_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/cleanup.h"

/*
 * Memory without a file, for a daemon that comes after this one. Its size stays what it was when it
 * was checked, whoever has its descriptor.
 */

#define SEALED_MEMORY_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Returns a descriptor of zeros, or a negative errno. */
static inline int sealed_memory_new(const char *name, size_t size) {
        _cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0 || ftruncate(fd, (off_t) size) < 0 ||
            fcntl(fd, F_ADD_SEALS, SEALED_MEMORY_SEALS) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static inline bool sealed_memory_is(int fd) {
        int seals = fcntl(fd, F_GET_SEALS);

        return seals >= 0 && (seals & SEALED_MEMORY_SEALS) == SEALED_MEMORY_SEALS;
}

#endif
