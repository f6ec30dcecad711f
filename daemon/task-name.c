/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "task-name.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"

int task_read_name(uint32_t tid, char ret[static TLOB_COMM_LEN + 1]) {
        _cleanup_close_ int fd = -EBADF;
        char path[64];
        ssize_t n;

        *ret = '\0';
        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, ret, TLOB_COMM_LEN);
        if (n < 0)
                return -errno;
        /* The last newline is not the thread's. */
        if (n > 0 && ret[n - 1] == '\n')
                n--;
        ret[n] = '\0';
        return 0;
}
