/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A file below /run, gone at reboot as the monitor's bindings are:
 *
 *     enabled 0
 *     mounted 0
 *     p /usr/bin/myapp:0x12a0 0x12f0 threshold=5000001
 *
 * It is written before the kernel is touched, under a temporary name, and renamed: a line in it may not
 * be in the monitor, but none of ours is in the monitor that is not in it.
 */

#include "kernel-state.h"

#include <fcntl.h>
#include <sys/stat.h>

#define DIRECTORY "/run/tlob"
#define FILE_NAME DIRECTORY "/kernel-monitor"
#define TEMPORARY DIRECTORY "/.kernel-monitor"

void kernel_state_done(KernelState *state) {
        kernel_lines_done(&state->lines);
        *state = (KernelState){};
}

static int read_file(char **ret) {
        _cleanup_fclose_ FILE *file = fopen(FILE_NAME, "re");
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        ssize_t n;

        if (!file)
                return -errno;
        n = getdelim(&text, &size, '\0', file);
        if (n < 0 && ferror(file))
                return -errno;
        if (n < 0)
                return -EBADMSG;
        *ret = TAKE_PTR(text);
        return 0;
}

int kernel_state_load(KernelState *ret) {
        _cleanup_free_ char *text = NULL;
        KernelState state = {};
        int enabled, mounted, n = 0, r;

        r = read_file(&text);
        if (r < 0)
                return r;
        if (sscanf(text, "enabled %d\nmounted %d\n%n", &enabled, &mounted, &n) != 2 || n == 0)
                return -EBADMSG;
        state.enabled = enabled != 0;
        state.mounted = mounted != 0;
        r = kernel_lines_parse(text + n, &state.lines);
        if (r < 0)
                return r;
        *ret = state;
        return 0;
}

int kernel_state_save(const KernelState *state) {
        _cleanup_fclose_ FILE *file = NULL;
        bool failed;

        if (mkdir(DIRECTORY, 0755) < 0 && errno != EEXIST)
                return -errno;
        file = fopen(TEMPORARY, "we");
        if (!file)
                return -errno;
        (void) fprintf(file, "enabled %d\nmounted %d\n", state->enabled, state->mounted);
        for (size_t i = 0; i < state->lines.n; i++)
                (void) fprintf(file, "%s\n", state->lines.items[i].text);
        failed = fflush(file) != 0 || ferror(file);
        if (failed || rename(TEMPORARY, FILE_NAME) < 0) {
                int r = errno > 0 ? -errno : -EIO;

                (void) unlink(TEMPORARY);
                return r;
        }
        return 0;
}

bool kernel_state_is_left(void) {
        return access(FILE_NAME, F_OK) == 0;
}

int kernel_state_forget(void) {
        return unlink(FILE_NAME) < 0 && errno != ENOENT ? -errno : 0;
}
