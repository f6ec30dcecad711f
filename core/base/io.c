/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/io.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

int write_all(int fd, const char *text, size_t size) {
        while (size > 0) {
                ssize_t n = write(fd, text, size);
                struct pollfd out = { .fd = fd, .events = POLLOUT };

                if (n < 0 && errno == EAGAIN && poll(&out, 1, -1) >= 0)
                        continue;
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                text += n;
                size -= (size_t) n;
        }
        return 0;
}
