/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "task-begin.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"

#define STAT_SIZE  1024
#define STAT_BEGIN 20 /* the field behind the name, which may have blanks: proc(5) */

int task_read_begin(uint32_t tid, uint64_t *ret_ns) {
        _cleanup_close_ int fd = -EBADF;
        char path[64], stat[STAT_SIZE];
        const char *field;
        uint64_t ticks;
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, stat, sizeof(stat) - 1);
        if (n < 0)
                return -errno;
        stat[n] = '\0';
        field = strrchr(stat, ')');
        for (unsigned i = 0; i < STAT_BEGIN && field; i++)
                field = strchr(field + 1, ' ');
        if (!field || sscanf(field, "%" SCNu64, &ticks) != 1)
                return -EBADMSG;
        *ret_ns = ticks * NSEC_PER_SEC / (uint64_t) sysconf(_SC_CLK_TCK);
        return 0;
}
