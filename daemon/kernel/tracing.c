/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The tracing file system. It is where it always is, or where the list of mounts says, or nowhere:
 * then it is mounted for as long as it is needed. libtracefs would mount it too, but forgets that
 * it did, and we leave the machine as it was.
 *
 * Files are written in one write() and never truncated: rv/enabled_monitors takes a truncation for
 * "disable every monitor", and what later versions of the monitor take it for is not known.
 * Switches read with a NUL byte at their end.
 */

#include "kernel/tracing.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <mntent.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <time.h>
#include <tracefs/tracefs.h>

#include "base/sentence.h"

#define USUAL_PATH    "/sys/kernel/tracing"
#define READ_CHUNK    65536
#define READ_SIZE_MAX (16 << 20)

/* Whatever is mounted there: it has what the root of the tracing file system has. */
static bool is_tracing(const char *path) {
        _cleanup_free_ char *file = NULL;

        return asprintf(&file, "%s/instances", path) >= 0 && access(file, F_OK) == 0;
}

static int find_mounted(char **ret) {
        struct mntent entry, *found = NULL;
        char strings[8192];
        FILE *mounts;

        if (is_tracing(USUAL_PATH)) {
                *ret = strdup(USUAL_PATH);
                return *ret ? 0 : -ENOMEM;
        }
        mounts = setmntent("/proc/self/mounts", "re");
        if (!mounts)
                return -errno;
        while ((found = getmntent_r(mounts, &entry, strings, sizeof(strings))))
                if (streq(entry.mnt_type, "tracefs") && is_tracing(entry.mnt_dir))
                        break;
        *ret = found ? strdup(entry.mnt_dir) : NULL;
        (void) endmntent(mounts);
        if (!found)
                return -ENOENT;
        return *ret ? 0 : -ENOMEM;
}

static int mount_tracing(char **ret, char **ret_reason) {
        char *path;

        if (mount("tracefs", USUAL_PATH, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
                return sentence_error(-errno, ret_reason,
                                      "The tracing file system is not mounted, and mounting it on "
                                      "%s failed: %s",
                                      USUAL_PATH, strerror(errno));
        path = strdup(USUAL_PATH);
        if (!path) {
                (void) umount2(USUAL_PATH, MNT_DETACH);
                return -ENOMEM;
        }
        *ret = path;
        return 0;
}

int kernel_tracing_init(KernelTracing *tracing, char **ret_reason) {
        KernelTracing result = {};
        int r;

        r = find_mounted(&result.path);
        if (r == -ENOENT) {
                r = mount_tracing(&result.path, ret_reason);
                result.mounted = r >= 0;
        }
        if (r < 0)
                return r;

        if (tracefs_set_tracing_dir(result.path) < 0) {
                kernel_tracing_done(&result);
                return -ENOMEM;
        }
        *tracing = result;
        return 0;
}

void kernel_tracing_done(KernelTracing *tracing) {
        if (tracing->mounted)
                (void) umount2(tracing->path, MNT_DETACH);
        free(tracing->path);
        *tracing = (KernelTracing) {};
}

char *kernel_tracing_path(const KernelTracing *tracing, const char *file) {
        char *path;

        return asprintf(&path, "%s/%s", tracing->path, file) < 0 ? NULL : path;
}

bool kernel_tracing_has(const KernelTracing *tracing, const char *file) {
        _cleanup_free_ char *path = kernel_tracing_path(tracing, file);

        return path && access(path, F_OK) == 0;
}

static int open_file(const KernelTracing *tracing, const char *file, int flags) {
        _cleanup_free_ char *path = kernel_tracing_path(tracing, file);
        int fd;

        if (!path)
                return -ENOMEM;
        fd = open(path, flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int kernel_tracing_read(const KernelTracing *tracing, const char *file, char **ret) {
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = -EBADF;
        size_t size = 0;
        ssize_t n;

        fd = open_file(tracing, file, O_RDONLY);
        if (fd < 0)
                return fd;
        do {
                char *larger = realloc(text, size + READ_CHUNK + 1);

                if (!larger)
                        return -ENOMEM;
                text = larger;
                n = read(fd, text + size, READ_CHUNK);
                if (n < 0)
                        return -errno;
                size += (size_t) n;
                if (size > READ_SIZE_MAX)
                        return -EFBIG;
        } while (n > 0);
        text[size] = '\0';
        *ret = TAKE_PTR(text);
        return 0;
}

int kernel_tracing_write(const KernelTracing *tracing, const char *file, const char *text) {
        _cleanup_close_ int fd = -EBADF;
        ssize_t n;

        fd = open_file(tracing, file, O_WRONLY | O_APPEND);
        if (fd < 0)
                return fd;
        n = write(fd, text, strlen(text));
        if (n < 0)
                return -errno;
        return n == (ssize_t) strlen(text) ? 0 : -EIO;
}

int kernel_tracing_read_switch(const KernelTracing *tracing, const char *file, bool *ret) {
        _cleanup_free_ char *text = NULL;
        int r;

        r = kernel_tracing_read(tracing, file, &text);
        if (r < 0)
                return r;
        if (text[0] != '0' && text[0] != '1')
                return -EBADMSG;
        *ret = text[0] == '1';
        return 0;
}

bool kernel_tracing_has_line(const KernelTracing *tracing, const char *file, const char *line) {
        _cleanup_free_ char *text = NULL;
        char *save = NULL;

        if (kernel_tracing_read(tracing, file, &text) < 0)
                return false;
        for (char *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
                if (streq(p, line))
                        return true;
        return false;
}
