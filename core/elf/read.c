/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A read may give less than was asked for, in the middle of a file: file systems of a network, or
 * of FUSE, do so. A file that was read in part must not pass for one that is damaged.
 */

#include "elf/read.h"

#include <errno.h>
#include <unistd.h>

ssize_t elf_read(int fd, void *data, size_t size, uint64_t offset) {
        size_t done = 0;

        while (done < size) {
                ssize_t n = pread(fd, (char *) data + done, size - done, (off_t) (offset + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                done += (size_t) n;
        }
        return (ssize_t) done;
}
