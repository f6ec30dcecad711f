/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* tracefs for tests, whether or not the machine has mounted it. */

#include "tracing.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "test.h"

#define TRACEFS "/sys/kernel/tracing"

void tracing_mount(const char *directory) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tracefs", directory, "tracefs", 0, NULL) < 0)
                fail_msg("Cannot mount tracefs: %m");
}

int tracing_need(void **state) {
        if (access(TRACEFS "/events", F_OK) < 0)
                tracing_mount(TRACEFS);
        return 0;
}
