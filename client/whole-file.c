/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Text that is written as a whole, also into a directory that belongs to somebody else, who may put
 * there what he likes at any time: so the directory is opened once, nothing in it is followed, and
 * what is written has no name before it is complete. Then whoever is killed meanwhile leaves
 * nothing. (Some file systems cannot make such files. There a file with another name is left.)
 */

#include "whole-file.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/sentence.h"

/* A file without a name, or with that one. */
static int open_new(int directory, const char *name, bool *ret_has_name) {
        int fd = openat(directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

        *ret_has_name = fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR);
        if (*ret_has_name)
                fd = openat(directory, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : fd;
}

static int give_name(int fd, int directory, const char *name) {
        char link[sizeof("/proc/self/fd/") + 3 * sizeof(int)];

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%i", fd);
        return linkat(AT_FDCWD, link, directory, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Who may do what with it. */
typedef struct Access {
        gid_t group; /* (gid_t) -1: that of a new file */
        mode_t mode;
} Access;

static Access access_of(WholeFileUse use, int directory, const char *name) {
        Access access = { .group = (gid_t) -1, .mode = 0644 };
        struct stat st;
        mode_t mask;

        if (use == WHOLE_FILE_SCRAPED)
                return access;
        if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISREG(st.st_mode) &&
            st.st_uid == geteuid())
                return (Access) { .group = st.st_gid, .mode = st.st_mode & 0777 };
        mask = umask(0077);
        (void) umask(mask);
        access.mode = 0666 & ~mask;
        return access;
}

/*
 * What was for a group is for no other one: not if it may not be given to that any more. Where
 * files have the owner and the permissions of their file system, they may have these.
 */
static int permit(int fd, Access access) {
        struct stat st;

        if (access.group != (gid_t) -1 && fchown(fd, (uid_t) -1, access.group) < 0)
                access.mode &= (mode_t) ~070;
        if (fchmod(fd, access.mode) >= 0)
                return 0;
        return errno == EPERM && fstat(fd, &st) >= 0 && (st.st_mode & access.mode) == access.mode
                       ? 0
                       : -EPERM;
}

/* How much of it there is can come out when it is on its way to the disk, or to a server. */
static int settle(int fd) {
        return fsync(fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
}

/* The same of its name, unless the directory may be written to only. */
static int settle_name(int directory) {
        _cleanup_close_ int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return errno == EACCES ? 0 : -errno;
        return settle(fd);
}

static int replace(int directory, const char *name, WholeFileUse use, const char *text,
                   size_t size) {
        _cleanup_free_ char *temporary = NULL;
        _cleanup_close_ int fd = -EBADF;
        unsigned char number[3];
        bool has_name;
        int r;

        if (getrandom(number, sizeof(number), 0) != sizeof(number))
                return -EIO;
        temporary = sentence_make(".%s.%02x%02x%02x", name, number[0], number[1], number[2]);
        if (!temporary)
                return -ENOMEM;
        fd = open_new(directory, temporary, &has_name);
        if (fd < 0)
                return fd;
        r = write_all(fd, text, size);
        if (r >= 0)
                r = permit(fd, access_of(use, directory, name));
        if (r >= 0 && use == WHOLE_FILE_KEPT)
                r = settle(fd);
        if (r >= 0 && !has_name) {
                r = give_name(fd, directory, temporary);
                has_name = r >= 0;
        }
        if (r >= 0 && renameat(directory, temporary, directory, name) < 0)
                r = -errno;
        if (r < 0 && has_name)
                (void) unlinkat(directory, temporary, 0);
        return r >= 0 && use == WHOLE_FILE_KEPT ? settle_name(directory) : r;
}

/* To what is no file. It may have become one. */
static int write_into(int directory, const char *path, int flags, const char *text, size_t size) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        fd = openat(directory, path, O_WRONLY | O_NOCTTY | O_CLOEXEC | flags);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) ? -EBUSY : write_all(fd, text, size);
}

/* By another name, such as /dev/stdout. */
static bool is_output(const struct stat *st) {
        struct stat output;

        return fstat(STDOUT_FILENO, &output) >= 0 && stat_is_of_same_file(st, &output);
}

/* Links there are the kernel's or root's. Others can lead to what their owner may not write. */
static bool is_special(const char *path) {
        return (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0) &&
               strncmp(path, "/dev/shm/", 9) != 0 && strncmp(path, "/dev/mqueue/", 12) != 0;
}

/* A device or a pipe is no file that could be replaced by another. */
static bool is_replaceable(const struct stat *st) {
        return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode);
}

/*
 * Where a link leads, that is open: it is what it was, whatever is in its place by now. Relative to
 * the directory that it is in.
 */
static int follow(int link, const char *path) {
        _cleanup_free_ char *parent = strdup(path);
        _cleanup_close_ int base = -EBADF;
        char text[PATH_MAX];
        ssize_t n;
        int fd;

        if (!parent)
                return -ENOMEM;
        n = readlinkat(link, "", text, sizeof(text) - 1);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        base = open(dirname(parent), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (base < 0)
                return -errno;
        fd = openat(base, text, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/*
 * A directory, or a link to one if it is root's or ours. Another user may lead us to what is his
 * own only.
 */
static int open_followed(const char *path, const char **ret_reason) {
        _cleanup_close_ int fd = -EBADF, target = -EBADF;
        struct stat st, there;

        fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISLNK(st.st_mode))
                return S_ISDIR(st.st_mode) ? TAKE_FD(fd) : -ENOTDIR;
        target = follow(fd, path);
        if (target < 0)
                return target;
        if (fstat(target, &there) < 0)
                return -errno;
        if (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != there.st_uid) {
                *ret_reason = "the directory is another user's link to what is not that user's";
                return -EPERM;
        }
        return TAKE_FD(target);
}

/* The directory of a path, up to the name in it. */
static int open_directory(const char *path, const char *name, const char **ret_reason) {
        _cleanup_free_ char *directory = NULL;
        size_t n = (size_t) (name - path);

        while (n > 1 && path[n - 1] == '/')
                n--;
        directory = n == 0 ? strdup(".") : strndup(path, n);
        return directory ? open_followed(directory, ret_reason) : -ENOMEM;
}

static int put(const char *path, WholeFileUse use, const char *text, size_t size,
               const char **ret_reason) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        _cleanup_close_ int directory = -EBADF;
        struct stat st;

        if (stat(path, &st) >= 0) {
                if (is_output(&st))
                        return write_all(STDOUT_FILENO, text, size);
                if (is_special(path) && !is_replaceable(&st))
                        return write_into(AT_FDCWD, path, 0, text, size);
        }
        directory = open_directory(path, name, ret_reason);
        if (directory < 0)
                return directory;
        if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) >= 0 && !is_replaceable(&st))
                return write_into(directory, name, O_NOFOLLOW, text, size);
        return replace(directory, name, use, text, size);
}

static int make_text(WholeFileWriter writer, const void *userdata, char **ret, size_t *ret_size) {
        FILE *f = open_memstream(ret, ret_size);
        int r;

        if (!f)
                return -ENOMEM;
        r = writer(f, userdata);
        return fclose(f) != 0 ? -ENOMEM : r;
}

/* Line by line, as it may be another machine's text. */
static int show(char *text, size_t size) {
        if (!isatty(STDOUT_FILENO)) {
                (void) fwrite(text, 1, size, stdout);
                return 0;
        }
        for (char *line = text, *end; *line != '\0'; line = end) {
                _cleanup_free_ char *shown = NULL;

                end = strchrnul(line, '\n');
                if (*end != '\0')
                        *end++ = '\0';
                shown = text_escape(line);
                if (!shown)
                        return -ENOMEM;
                (void) puts(shown);
        }
        return 0;
}

int whole_file_write(const char *path, WholeFileUse use, WholeFileWriter writer,
                     const void *userdata) {
        _cleanup_free_ char *text = NULL;
        const char *reason = NULL;
        size_t size = 0;
        int r;

        r = make_text(writer, userdata, &text, &size);
        if (r < 0) {
                warnx("Out of memory");
                return r;
        }
        if (!path)
                return show(text, size);
        r = put(path, use, text, size, &reason);
        if (r < 0)
                warnx("Failed to write %s: %s", path, reason ?: strerror(-r));
        return r;
}
