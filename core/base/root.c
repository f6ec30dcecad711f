/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Paths as another process sees them. A unit's: below RootDirectory=, in an image, in a container,
 * or where something else is mounted over a part of the tree. Or PID 1, which sees the homes and
 * temporary files that our own unit hides from us. Links are taken inside that tree, and never lead
 * out of it. The process may go at any time; what was opened stays.
 */

#include "base/root.h"

#include <fcntl.h>
#include <limits.h>

#include "base/io.h"

#define DEPTH_MAX 64
#define LINKS_MAX 40

void root_done(Root *root) {
        root->fd = safe_close(root->fd);
        free(root->path);
        root->path = NULL;
}

int root_copy(const Root *root, Root *ret) {
        _cleanup_(root_done) Root copy = ROOT_OWN;

        if (root->fd >= 0)
                copy.fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 3);
        if (root->fd >= 0 && copy.fd < 0)
                return -errno;
        if (root->path)
                copy.path = strdup(root->path);
        if (root->path && !copy.path)
                return -ENOMEM;
        *ret = copy;
        copy = ROOT_OWN;
        return 0;
}

/* In a tree that is mounted elsewhere, it is the path there. */
int root_path_of_fd(int fd, char **ret) {
        char link[sizeof("/proc/self/fd/") + 3 * sizeof(int)];

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%i", fd);
        return read_link(link, ret);
}

/* Takes over fd, a directory, or a negative errno. */
static int root_of_fd(int fd, Root *ret) {
        _cleanup_close_ int root = fd;
        _cleanup_free_ char *outside = NULL;
        int r;

        if (fd < 0)
                return fd;
        r = root_path_of_fd(fd, &outside);
        if (r < 0)
                return r;
        *ret = (Root) { .fd = TAKE_FD(root) };
        if (!streq(outside, "/"))
                ret->path = TAKE_PTR(outside);
        return 0;
}

int root_of_directory(const Root *root, const char *path, Root *ret) {
        _cleanup_close_ int fd = root_open(root, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISDIR(st.st_mode))
                return -ENOTDIR;
        return root_of_fd(TAKE_FD(fd), ret);
}

int root_of_process(uint32_t pid, Root *ret) {
        struct stat own, other;
        char path[64];
        int fd, r;

        (void) snprintf(path, sizeof(path), "/proc/%u/root", pid);
        fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        r = root_of_fd(fd < 0 ? -errno : fd, ret);
        if (r < 0)
                return r;
        if (fstat(ret->fd, &other) < 0 || stat("/", &own) < 0) {
                r = -errno;
                root_done(ret);
                return r;
        }
        return stat_is_of_same_file(&own, &other);
}

int root_of_machine(Root *ret) {
        _cleanup_(root_done) Root root = ROOT_OWN;
        struct stat own, other;
        int r;

        r = root_of_process(1, &root);
        if (r < 0)
                return r;
        if (stat("/proc/self/ns/mnt", &own) < 0 || stat("/proc/1/ns/mnt", &other) < 0)
                return -errno;
        /* Who has been given a tree of its own, not only other mounts, is to see that. */
        if (r == 0 || stat_is_of_same_file(&own, &other)) {
                *ret = ROOT_OWN;
                return 1;
        }
        *ret = root;
        root = ROOT_OWN;
        return 0;
}

/* Where we are on the way to a path: the directories above, and what is still before us. */
typedef struct Walk {
        int root;
        int fds[DEPTH_MAX]; /* none: in the root */
        unsigned n;
        unsigned n_links;
        char rest[2 * PATH_MAX];
} Walk;

static void walk_up(Walk *walk) {
        if (walk->n > 0)
                safe_close(walk->fds[--walk->n]);
}

static void walk_done(Walk *walk) {
        while (walk->n > 0)
                walk_up(walk);
}

/* Takes the first component off what is before us. Returns false if nothing is. */
static bool next_component(Walk *walk, char ret[static NAME_MAX + 1]) {
        size_t skipped = strspn(walk->rest, "/"), n = strcspn(walk->rest + skipped, "/");

        if (n == 0)
                return false;
        /* One that is too long is of no file. */
        (void) snprintf(ret, NAME_MAX + 1, "%.*s", (int) n, walk->rest + skipped);
        memmove(walk->rest, walk->rest + skipped + n, strlen(walk->rest + skipped + n) + 1);
        return true;
}

static int follow_link(Walk *walk, int fd) {
        char target[PATH_MAX], rest[sizeof(walk->rest)];
        ssize_t n;

        if (++walk->n_links > LINKS_MAX)
                return -ELOOP;
        n = readlinkat(fd, "", target, sizeof(target) - 1);
        if (n < 0)
                return -errno;
        target[n] = '\0';
        (void) snprintf(rest, sizeof(rest), "%s", walk->rest);
        if (snprintf(walk->rest, sizeof(walk->rest), "%s/%s", target, rest) >=
            (int) sizeof(walk->rest))
                return -ENAMETOOLONG;
        if (target[0] == '/')
                walk_done(walk);
        return 0;
}

static int step(Walk *walk, const char *name) {
        int at = walk->n > 0 ? walk->fds[walk->n - 1] : walk->root;
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        /* That it is to be a directory mounts what is mounted on demand. */
        fd = openat(at, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno == ENOTDIR) {
                fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
                if (fd >= 0 && fstat(fd, &st) >= 0 && S_ISLNK(st.st_mode))
                        return follow_link(walk, fd);
        }
        if (fd < 0)
                return -errno;
        if (walk->n == DEPTH_MAX)
                return -ENAMETOOLONG;
        walk->fds[walk->n++] = TAKE_FD(fd);
        return 0;
}

/*
 * By hand, because openat2() is not there for services that may make no setuid files: systemd
 * cannot look at its flags.
 */
static int open_inside(int root, const char *path) {
        _cleanup_(walk_done) Walk walk = { .root = root };
        char name[NAME_MAX + 1];
        int fd, r;

        if (snprintf(walk.rest, sizeof(walk.rest), "%s", path) >= PATH_MAX)
                return -ENAMETOOLONG;
        while (next_component(&walk, name)) {
                if (streq(name, "."))
                        continue;
                if (streq(name, "..")) {
                        walk_up(&walk);
                        continue;
                }
                r = step(&walk, name);
                if (r < 0)
                        return r;
        }
        fd = fcntl(walk.n > 0 ? walk.fds[walk.n - 1] : root, F_DUPFD_CLOEXEC, 3);
        return fd < 0 ? -errno : fd;
}

int root_open(const Root *root, const char *path, int flags) {
        char link[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
        _cleanup_close_ int fd = -EBADF;
        int opened;

        if (root->fd < 0) {
                opened = open(path, flags);
                return opened < 0 ? -errno : opened;
        }
        fd = open_inside(root->fd, path);
        if (fd < 0 || (flags & O_PATH))
                return TAKE_FD(fd);
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%i", fd);
        opened = open(link, flags);
        return opened < 0 ? -errno : opened;
}

static bool is_hidden(int error) {
        return error == -ENOENT || error == -EACCES;
}

int root_open_anywhere(const char *path, int flags) {
        _cleanup_(root_done) Root machine = ROOT_OWN;
        int fd = open(path, flags), r = fd < 0 ? -errno : fd;

        if (!is_hidden(r) || root_of_machine(&machine) != 0)
                return r;
        return root_open(&machine, path, flags);
}

int root_stat_anywhere(const char *path, struct stat *ret) {
        _cleanup_close_ int fd = -EBADF;

        if (stat(path, ret) >= 0)
                return 0;
        fd = is_hidden(-errno) ? root_open_anywhere(path, O_PATH | O_CLOEXEC) : -errno;
        if (fd < 0)
                return fd;
        return fstat(fd, ret) < 0 ? -errno : 0;
}

DIR *root_open_directory_anywhere(const char *path) {
        int fd = root_open_anywhere(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir;

        if (fd < 0) {
                errno = -fd;
                return NULL;
        }
        dir = fdopendir(fd);
        if (!dir)
                safe_close(fd);
        return dir;
}

int root_resolve(const Root *root, const char *path, char **ret) {
        _cleanup_free_ char *resolved = NULL;
        _cleanup_close_ int fd = -EBADF;
        size_t n;
        int r;

        if (root->fd < 0) {
                resolved = realpath(path, NULL);
                if (!resolved)
                        return -errno;
                *ret = TAKE_PTR(resolved);
                return 0;
        }
        fd = root_open(root, path, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return fd;
        r = root_path_of_fd(fd, &resolved);
        if (r < 0)
                return r;
        n = root->path ? strlen(root->path) : 0;
        if (n > 0 && (strncmp(resolved, root->path, n) != 0 || resolved[n] != '/'))
                return free_and_strdup(ret, path);
        *ret = strdup(resolved + n);
        return *ret ? 0 : -ENOMEM;
}

char *root_outside(const Root *root, const char *path) {
        char *outside;

        return asprintf(&outside, "%s%s", root->path ?: "", path) < 0 ? NULL : outside;
}

const char *root_inside(const Root *root, const char *path) {
        size_t n = root->path ? strlen(root->path) : 0;

        if (n > 0 && strncmp(path, root->path, n) != 0)
                return NULL;
        return path[n] == '/' ? path + n : NULL;
}
