/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "manager/violation-file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/io.h"
#include "report/fields.h"

#define FILES_MAX 64

static int open_directory(const char *parent, DIR **ret) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (asprintf(&path, "%s/violations", parent) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = make_parents(path);
        if (r < 0)
                return r;
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        *ret = opendir(path);
        return *ret ? 0 : -errno;
}

typedef struct Oldest {
        char name[WINDOW_ID_MAX]; /* "": none may go */
        struct timespec time;
        size_t n; /* of all files */
} Oldest;

static bool is_before(const struct timespec *a, const struct timespec *b) {
        return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Ours have the numbers of windows. */
static void look_at(Oldest *oldest, int directory, const char *name, const uint64_t *used,
                    size_t n_used) {
        struct stat st;
        uint64_t id;
        char *end;

        id = strtoull(name, &end, 10);
        if (end == name || *end != '\0' || strlen(name) >= sizeof(oldest->name))
                return;
        oldest->n++;
        for (size_t i = 0; i < n_used; i++)
                if (used[i] == id)
                        return;
        if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            (*oldest->name && !is_before(&st.st_mtim, &oldest->time)))
                return;
        oldest->time = st.st_mtim;
        strcpy(oldest->name, name);
}

static void make_room(DIR *directory, const uint64_t *used, size_t n_used) {
        Oldest oldest = {};

        for (const struct dirent *entry; (entry = readdir(directory));)
                look_at(&oldest, dirfd(directory), entry->d_name, used, n_used);
        if (oldest.n >= FILES_MAX && *oldest.name)
                (void) unlinkat(dirfd(directory), oldest.name, 0);
}

int violation_file_write(const char *parent, const Violation *v, const uint64_t *used,
                         size_t n_used) {
        _cleanup_closedir_ DIR *directory = NULL;
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = -EBADF;
        char name[WINDOW_ID_MAX];
        int r;

        text = violation_to_environment(v);
        if (!text)
                return -ENOMEM;
        r = open_directory(parent, &directory);
        if (r < 0)
                return r;
        make_room(directory, used, n_used);
        (void) snprintf(name, sizeof(name), "%" PRIu64, v->report.id);
        fd = openat(dirfd(directory), name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                    0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, text, strlen(text));
        if (r < 0)
                (void) unlinkat(dirfd(directory), name, 0);
        return r;
}
