/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A file below /run, gone at reboot as the monitor's bindings are:
 *
 *     enabled 0
 *     mounted 0
 *     p /usr/bin/myapp:0x12a0 0x12f0 threshold=5000001
 *
 * It is written before the kernel is touched, under a temporary name, and renamed: a line in it may
 * not be in the monitor, but none of ours is in the monitor that is not in it.
 */

#include "kernel/state.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FILE_NAME "kernel-monitor"
#define TEMPORARY "." FILE_NAME

static int open_directory(const char *path) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static FILE *open_file(int directory, const char *name, int flags, const char *mode) {
        int fd = openat(directory, name, flags | O_CLOEXEC, 0666);
        FILE *file;

        if (fd < 0)
                return NULL;
        file = fdopen(fd, mode);
        if (!file)
                safe_close(fd);
        return file;
}

void kernel_state_done(KernelState *state) {
        kernel_lines_done(&state->lines);
        *state = (KernelState) {};
}

static int read_file(const char *path, char **ret) {
        _cleanup_close_ int directory = open_directory(path);
        _cleanup_fclose_ FILE *file = NULL;
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        ssize_t n;

        if (directory < 0)
                return directory;
        file = open_file(directory, FILE_NAME, O_RDONLY, "r");
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

int kernel_state_load(const char *directory, KernelState *ret) {
        _cleanup_free_ char *text = NULL;
        KernelState state = {};
        int enabled, mounted, n = 0, r;

        r = read_file(directory, &text);
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

int kernel_state_save(const char *path, const KernelState *state) {
        _cleanup_close_ int directory = -EBADF;
        _cleanup_fclose_ FILE *file = NULL;
        bool failed;

        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return -errno;
        directory = open_directory(path);
        if (directory < 0)
                return directory;
        file = open_file(directory, TEMPORARY, O_WRONLY | O_CREAT | O_TRUNC, "w");
        if (!file)
                return -errno;
        (void) fprintf(file, "enabled %d\nmounted %d\n", state->enabled, state->mounted);
        for (size_t i = 0; i < state->lines.n; i++)
                (void) fprintf(file, "%s\n", state->lines.items[i].text);
        failed = fflush(file) != 0 || ferror(file);
        if (failed || renameat(directory, TEMPORARY, directory, FILE_NAME) < 0) {
                int r = errno > 0 ? -errno : -EIO;

                (void) unlinkat(directory, TEMPORARY, 0);
                return r;
        }
        return 0;
}

bool kernel_state_is_left(const char *path) {
        _cleanup_close_ int directory = open_directory(path);

        return directory >= 0 && faccessat(directory, FILE_NAME, F_OK, 0) == 0;
}

int kernel_state_forget(const char *path) {
        _cleanup_close_ int directory = open_directory(path);

        if (directory < 0)
                return directory == -ENOENT ? 0 : directory;
        return unlinkat(directory, FILE_NAME, 0) < 0 && errno != ENOENT ? -errno : 0;
}
