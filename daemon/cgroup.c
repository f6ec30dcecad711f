/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From units to cgroup ids, which is what the BPF programs see, and from the ids in their records
 * back to units. It asks only the kernel, never systemd, and keeps nothing: an id that is resolved
 * later than its cgroup lives gives an error.
 *
 * The id of a cgroup is the inode number of its directory, and a file handle made of it opens that
 * directory again.
 */

#include "cgroup.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/unit-name.h"

#ifndef FILEID_KERNFS
#define FILEID_KERNFS 0xfe
#endif

static bool has_suffix(const char *s, size_t n, const char *suffix) {
        size_t m = strlen(suffix);

        return n > m && strncmp(s + n - m, suffix, m) == 0;
}

/* systemd escapes names that clash with the kernel's files by a leading '_'. */
static const char *unescape_start(const char *name, size_t *n) {
        if (*n == 0 || *name != '_')
                return name;
        --*n;
        return name + 1;
}

int cgroup_open_root(void) {
        static const char *const paths[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                struct statfs fs;
                int fd;

                if (statfs(paths[i], &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
                        continue;
                fd = open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                return fd < 0 ? -errno : fd;
        }
        return -ENOENT;
}

unsigned cgroup_path_get_level(const char *path) {
        unsigned level = 0;

        for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
                level++;
                path += strcspn(path, "/");
        }
        return level;
}

int cgroup_path_get_id(int root_fd, const char *path, uint64_t *ret_id, unsigned *ret_level) {
        const char *below = path + strspn(path, "/");
        struct stat st;

        if (fstatat(root_fd, *below ? below : ".", &st, 0) < 0)
                return -errno;
        *ret_id = st.st_ino;
        *ret_level = cgroup_path_get_level(path);
        return 0;
}

/* Names that lead nowhere else. */
static bool path_is_plain(const char *path) {
        if (path[0] != '/')
                return false;
        for (const char *p = path + 1;; p += strcspn(p, "/") + 1) {
                size_t n = strcspn(p, "/");

                if (n == 0 || (n <= 2 && strspn(p, ".") >= n))
                        return false;
                if (p[n] == '\0')
                        return true;
        }
}

int cgroup_find_delegated(int root_fd, const char *path, uid_t user, uint64_t *ret_id,
                          unsigned *ret_level) {
        _cleanup_free_ char *below = NULL;
        struct stat st;
        char *slash;

        if (!path_is_plain(path))
                return -EINVAL;
        below = strdup(path + 1);
        if (!below)
                return -ENOMEM;
        *ret_id = 0;
        *ret_level = cgroup_path_get_level(path);
        while (fstatat(root_fd, below, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                slash = strrchr(below, '/');
                if (errno != ENOENT || !slash)
                        return errno == ENOENT ? -EPERM : -errno;
                *slash = '\0';
        }
        if (!S_ISDIR(st.st_mode) || st.st_uid != user)
                return -EPERM;
        if (strlen(below) == strlen(path + 1))
                *ret_id = st.st_ino;
        return 0;
}

int cgroup_id_get_path(int root_fd, uint64_t id, char **ret_path) {
        union {
                struct file_handle handle;
                char space[sizeof(struct file_handle) + sizeof(id)];
        } u = { .handle = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } };
        char link[64], root[4096], path[4096];
        _cleanup_close_ int fd = -EBADF;
        ssize_t n;
        char *p;

        memcpy(u.handle.f_handle, &id, sizeof(id));
        fd = open_by_handle_at(root_fd, &u.handle, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%i", root_fd);
        n = readlink(link, root, sizeof(root) - 1);
        if (n < 0)
                return -errno;
        root[n] = '\0';

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%i", fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n < 0)
                return -errno;
        path[n] = '\0';

        if (strncmp(path, root, strlen(root)) != 0)
                return -ENOENT;
        p = strdup(path[strlen(root)] ? path + strlen(root) : "/");
        if (!p)
                return -ENOMEM;
        *ret_path = p;
        return 0;
}

/* Has the cgroup at the first n bytes of path a CPU quota? */
static bool has_quota(int root_fd, const char *path, size_t n) {
        _cleanup_close_ int fd = -EBADF;
        char file[4096], first = '\0';

        if (snprintf(file, sizeof(file), ".%.*s/cpu.max", (int) n, path) < (int) sizeof(file))
                fd = openat(root_fd, file, O_RDONLY | O_CLOEXEC);
        /* "max" in place of a number: it has none. */
        return fd >= 0 && read(fd, &first, 1) == 1 && first >= '0' && first <= '9';
}

int cgroup_path_get_limiting_unit(int root_fd, const char *path, char **ret_unit) {
        _cleanup_free_ char *name = NULL;
        const char *found = NULL;
        size_t length = 0;

        *ret_unit = NULL;
        for (const char *p = path + strspn(path, "/"); *p; p += strspn(p, "/")) {
                size_t n = strcspn(p, "/");

                if (has_quota(root_fd, path, (size_t) (p - path) + n)) {
                        if (found)
                                return 0;
                        found = p;
                        length = n;
                }
                p += n;
        }
        if (!found)
                return 0;
        found = unescape_start(found, &length);
        name = strndup(found, length);
        if (!name)
                return -ENOMEM;
        if (unit_name_is_valid(name))
                *ret_unit = TAKE_PTR(name);
        return 0;
}

const char *cgroup_path_below(const char *root, const char *path) {
        size_t n = strlen(root);

        if (strncmp(path, root, n) != 0 || (n > 0 && path[n] != '/' && path[n] != '\0'))
                return NULL;
        return path + n;
}

static bool is_unit(const char *name) {
        const char *type = unit_name_type(name, UNIT_HAS_PROCESSES);

        return type && strlen(name) > strlen(type);
}

int cgroup_path_get_unit(const char *path, char **ret_unit) {
        for (;;) {
                _cleanup_free_ char *unit = NULL;
                size_t n;

                path += strspn(path, "/");
                n = strcspn(path, "/");
                if (n == 0)
                        return -ENXIO;
                if (has_suffix(path, n, ".slice")) {
                        path += n;
                        continue;
                }

                path = unescape_start(path, &n);
                unit = strndup(path, n);
                if (!unit)
                        return -ENOMEM;
                if (!is_unit(unit))
                        return -ENXIO;
                *ret_unit = TAKE_PTR(unit);
                return 0;
        }
}

int cgroup_path_get_template(const char *path, char **ret_name) {
        const char *slash = path ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : path;
        const char *at = name ? strchr(name, '@') : NULL, *dot = at ? strrchr(at, '.') : NULL;
        char *template;

        if (!dot)
                return -EINVAL;
        if (asprintf(&template, "%.*s@%s", (int) (at - name), name, dot) < 0)
                return -ENOMEM;
        *ret_name = template;
        return 0;
}

/* As systemd's cg_needs_escape(): names that the kernel could have for files of its own. */
static bool needs_escape(const char *name, size_t n) {
        static const char *const files[] = { "notify_on_release", "release_agent", "tasks" };
        static const char *const prefixes[] = {
                "cgroup",
                "cpu",
                "cpuacct",
                "cpuset",
                "io",
                "blkio",
                "memory",
                "devices",
                "pids",
                "bpf-firewall",
                "bpf-devices",
                "bpf-foreign",
                "bpf-socket-bind",
                "bpf-restrict-network-interfaces",
        };

        if (name[0] == '_' || name[0] == '.')
                return true;
        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                if (strlen(files[i]) == n && strncmp(files[i], name, n) == 0)
                        return true;
        for (size_t i = 0; i < ELEMENTSOF(prefixes); i++) {
                size_t m = strlen(prefixes[i]);

                if (n > m && name[m] == '.' && strncmp(prefixes[i], name, m) == 0)
                        return true;
        }
        return false;
}

static void print_component(FILE *f, const char *name, size_t n, const char *suffix) {
        (void) fprintf(f, "/%s%.*s%s", needs_escape(name, n) ? "_" : "", (int) n, name, suffix);
}

/* "a-b.slice" is in "a.slice", which is in the slice of all. */
static void print_slice(FILE *f, const char *slice) {
        size_t n = strlen(slice) - strlen(".slice");

        if (streq(slice, "-.slice"))
                return;
        for (size_t i = 1; i < n; i++)
                if (slice[i] == '-')
                        print_component(f, slice, i, ".slice");
        print_component(f, slice, strlen(slice), "");
}

int cgroup_path_of_unit(const char *slice, const char *unit, char **ret_path) {
        _cleanup_free_ char *path = NULL;
        size_t size;
        FILE *f;

        f = open_memstream(&path, &size);
        if (!f)
                return -ENOMEM;
        if (!slice)
                print_slice(f, unit);
        else {
                if (has_suffix(slice, strlen(slice), ".slice"))
                        print_slice(f, slice);
                print_component(f, unit, strlen(unit), "");
        }
        /* glibc (2.36) reports no error if it cannot trim the text, and leaves none. */
        if (fclose(f) != 0 || !path)
                return -ENOMEM;
        *ret_path = TAKE_PTR(path);
        return 0;
}
