/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What is pinned where the file system is not our own, but the machine's. Each set of maps has a
 * directory for itself there: "bpf-1", and when all had to be set up anew, "bpf-2", with the first
 * one still there until the second is complete. It is when the state is pinned in it, the last of
 * all. So a daemon can be killed at any moment, and the next one finds one of the two. Of several,
 * the last that is complete holds, and the others go.
 *
 * What has another name belongs to somebody else, and stays.
 */

#include "bpf/pin-directory.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"

#define KIND  "bpf-"
#define STATE "state"

typedef struct DirectoryName {
        char text[32];
} DirectoryName;

static DirectoryName name_of(unsigned long number) {
        DirectoryName name;

        (void) snprintf(name.text, sizeof(name.text), KIND "%lu", number);
        return name;
}

/* 0: it is none of ours. */
static unsigned long number_of(const char *name) {
        unsigned long number;

        if (strncmp(name, KIND, strlen(KIND)) != 0)
                return 0;
        number = strtoul(name + strlen(KIND), NULL, 10);
        return streq(name_of(number).text, name) ? number : 0;
}

static int open_below(int fd, const char *name) {
        int below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return below < 0 ? -errno : below;
}

DIR *pin_directory_read(int fd) {
        int copy = open_below(fd, ".");
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);

        if (!dir)
                safe_close(copy);
        return dir;
}

PinPath pin_directory_path(int fd, const char *name) {
        PinPath path;

        (void) snprintf(path.text, sizeof(path.text), "/proc/self/fd/%i/%.30s", fd, name);
        return path;
}

static bool is_complete(int keep_fd, unsigned long number) {
        char path[64];

        (void) snprintf(path, sizeof(path), "%s/" STATE, name_of(number).text);
        return faccessat(keep_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
}

/* The last one, or of those that are complete; 0: there is none. */
static unsigned long find_last(int keep_fd, bool complete) {
        _cleanup_closedir_ DIR *dir = pin_directory_read(keep_fd);
        const struct dirent *entry;
        unsigned long last = 0;

        while (dir && (entry = readdir(dir))) {
                unsigned long number = number_of(entry->d_name);

                if (number > last && (!complete || is_complete(keep_fd, number)))
                        last = number;
        }
        return last;
}

int pin_directory_make(int keep_fd) {
        DirectoryName name = name_of(find_last(keep_fd, false) + 1);

        if (mkdirat(keep_fd, name.text, 0700) < 0)
                return -errno;
        return open_below(keep_fd, name.text);
}

int pin_directory_find(int keep_fd, int *ret_fd, int *ret_state_fd) {
        unsigned long number = find_last(keep_fd, true);
        _cleanup_close_ int fd = -EBADF;
        int state_fd;

        if (number == 0)
                return -ENOENT;
        fd = open_below(keep_fd, name_of(number).text);
        if (fd < 0)
                return fd;
        state_fd = bpf_obj_get(pin_directory_path(fd, STATE).text);
        if (state_fd < 0)
                return -errno;
        *ret_fd = TAKE_FD(fd);
        *ret_state_fd = state_fd;
        return 0;
}

int pin_directory_complete(int fd, int state_fd) {
        if (bpf_obj_pin(state_fd, pin_directory_path(fd, STATE).text) < 0)
                return -errno;
        return 0;
}

static void remove_with_pins(int keep_fd, const char *name) {
        _cleanup_close_ int fd = open_below(keep_fd, name);
        _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : pin_directory_read(fd);
        const struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                (void) unlinkat(fd, entry->d_name, 0);
        (void) unlinkat(keep_fd, name, AT_REMOVEDIR);
}

static bool is_same(const struct stat *own, int keep_fd, const char *name) {
        struct stat st;

        return fstatat(keep_fd, name, &st, AT_SYMLINK_NOFOLLOW) >= 0 &&
               stat_is_of_same_file(&st, own);
}

/* That one, or those beside it. A file system of our own has none of these, not even that one. */
static void remove_those(int fd, bool own) {
        _cleanup_close_ int keep_fd = open_below(fd, "..");
        _cleanup_closedir_ DIR *dir = keep_fd < 0 ? NULL : pin_directory_read(keep_fd);
        const struct dirent *entry;
        struct stat st;

        if (fstat(fd, &st) < 0)
                return;
        while (dir && (entry = readdir(dir)))
                if (number_of(entry->d_name) && is_same(&st, keep_fd, entry->d_name) == own)
                        remove_with_pins(keep_fd, entry->d_name);
}

void pin_directory_remove(int fd) {
        remove_those(fd, true);
}

void pin_directory_remove_others(int fd) {
        remove_those(fd, false);
}
