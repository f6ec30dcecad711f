/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "whole-file.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/sentence.h"

static int replace(const char *path, const char *text, size_t size) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        _cleanup_free_ char *temporary = NULL;
        _cleanup_close_ int fd = -EBADF;
        int r;

        temporary = sentence_make("%.*s.%s.XXXXXX", (int) (name - path), path, name);
        if (!temporary)
                return -ENOMEM;
        fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = write_all(fd, text, size);
        if (r >= 0 && fchmod(fd, 0644) < 0)
                r = -errno;
        if (r >= 0 && rename(temporary, path) < 0)
                r = -errno;
        if (r < 0)
                (void) unlink(temporary);
        return r;
}

/* By another name, such as /dev/stdout. */
static bool is_output(const struct stat *st) {
        struct stat output;

        return fstat(STDOUT_FILENO, &output) >= 0 && st->st_dev == output.st_dev &&
               st->st_ino == output.st_ino;
}

/* Links there are the kernel's or root's. Others can lead to what their owner may not write. */
static bool is_special(const char *path) {
        return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

/* A device or a pipe is no file that could be replaced by another. */
static int put(const char *path, const char *text, size_t size) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        if (stat(path, &st) < 0)
                return replace(path, text, size);
        if (is_output(&st))
                return write_all(STDOUT_FILENO, text, size);
        if (!is_special(path) && lstat(path, &st) < 0)
                return -errno;
        if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode))
                return replace(path, text, size);
        fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? -errno : write_all(fd, text, size);
}

static int make_text(WholeFileWriter writer, const void *userdata, char **ret, size_t *ret_size) {
        FILE *f = open_memstream(ret, ret_size);
        int r;

        if (!f)
                return -ENOMEM;
        r = writer(f, userdata);
        return fclose(f) != 0 ? -ENOMEM : r;
}

int whole_file_write(const char *path, WholeFileWriter writer, const void *userdata) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int r;

        r = make_text(writer, userdata, &text, &size);
        if (r < 0) {
                warnx("Out of memory");
                return r;
        }
        if (!path) {
                (void) fwrite(text, 1, size, stdout);
                return 0;
        }
        r = put(path, text, size);
        if (r < 0) {
                errno = -r;
                warn("Failed to write %s", path);
        }
        return r;
}
