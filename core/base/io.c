/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/io.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

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

int read_link(const char *path, char **ret) {
        char target[PATH_MAX];
        ssize_t n = readlink(path, target, sizeof(target));
        char *copy;

        if (n < 0)
                return -errno;
        if (n == sizeof(target))
                return -ENAMETOOLONG;
        copy = strndup(target, (size_t) n);
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        return 0;
}

int make_parents(const char *path) {
        _cleanup_free_ char *parent = strdup(path);

        if (!parent)
                return -ENOMEM;
        for (char *slash = parent; (slash = strchr(slash + 1, '/'));) {
                *slash = '\0';
                if (mkdir(parent, 0700) < 0 && errno != EEXIST)
                        return -errno;
                *slash = '/';
        }
        return 0;
}
