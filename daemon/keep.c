/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The directory of --keep-in=. Whoever can write in it decides what the next daemon takes for its
 * own, so that nobody but root may. It is locked for as long as this process lives: the bus would
 * refuse a second daemon its name only when that has taken everything. What is in the directory is
 * for back ends to know.
 */

#include "keep.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/sentence.h"

#define FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int check_file_system(int fd, const char *path, char **ret_reason) {
        struct statfs st;

        if (fstatfs(fd, &st) < 0)
                return sentence_error(-errno, ret_reason, "Failed to look at %s: %s", path,
                                      strerror(errno));
        if (st.f_type != BPF_FS_MAGIC)
                return sentence_error(-EINVAL, ret_reason,
                                      "%s is not in a BPF file system, such as /sys/fs/bpf", path);
        return 0;
}

/* In a directory that is there. */
static int make(const char *path, char **ret_reason) {
        const char *name = strrchr(path, '/') + 1;
        _cleanup_free_ char *parent = strndup(path, (size_t) (name - path));
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (!parent)
                return -ENOMEM;
        fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return sentence_error(-errno, ret_reason, "Failed to open %s: %s", parent,
                                      strerror(errno));
        r = check_file_system(fd, path, ret_reason);
        if (r < 0)
                return r;
        if (mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
                return sentence_error(-errno, ret_reason, "Failed to make %s: %s", path,
                                      strerror(errno));
        return 0;
}

static int open_or_make(const char *path, char **ret_reason) {
        struct stat st;
        int fd, r;

        if (lstat(path, &st) < 0 && errno == ENOENT) {
                r = make(path, ret_reason);
                if (r < 0)
                        return r;
        }
        fd = open(path, FLAGS);
        if (fd >= 0)
                return fd;
        /* Of a link, too, it says that it is no directory. */
        r = -errno;
        if (lstat(path, &st) >= 0 && S_ISLNK(st.st_mode))
                return sentence_error(r, ret_reason, "%s is a symbolic link", path);
        return sentence_error(r, ret_reason, "Failed to open %s: %s", path, strerror(-r));
}

static int check_rights(int fd, const char *path, char **ret_reason) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return sentence_error(-errno, ret_reason, "Failed to look at %s: %s", path,
                                      strerror(errno));
        if (st.st_uid != 0)
                return sentence_error(-EPERM, ret_reason, "%s is not owned by root", path);
        if (st.st_mode & (S_IWGRP | S_IWOTH))
                return sentence_error(-EPERM, ret_reason,
                                      "%s can be written by others than its owner", path);
        if (faccessat(fd, ".", W_OK, 0) < 0)
                return sentence_error(-errno, ret_reason, "%s cannot be written: %s", path,
                                      strerror(errno));
        return 0;
}

static int lock(int fd, const char *path, char **ret_reason) {
        if (flock(fd, LOCK_EX | LOCK_NB) >= 0)
                return 0;
        if (errno == EWOULDBLOCK)
                return sentence_error(-EBUSY, ret_reason, "%s is in use by another tlobd", path);
        return sentence_error(-errno, ret_reason, "Failed to lock %s: %s", path, strerror(errno));
}

/* With one at the end, a link would be followed. */
static char *without_slashes(const char *path) {
        size_t length = strlen(path);

        while (length > 1 && path[length - 1] == '/')
                length--;
        return strndup(path, length);
}

int keep_open(const char *path, int *ret_fd, char **ret_reason) {
        _cleanup_free_ char *name = without_slashes(path);
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (!name)
                return -ENOMEM;
        fd = open_or_make(name, ret_reason);
        if (fd < 0)
                return fd;
        r = check_file_system(fd, name, ret_reason);
        if (r >= 0)
                r = check_rights(fd, name, ret_reason);
        if (r >= 0)
                r = lock(fd, name, ret_reason);
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(fd);
        return 0;
}
