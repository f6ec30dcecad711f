/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "elf/kept-file.h"

#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "elf/internal.h"

/* What is written through a mapping does not show in the times of the file. */
#define FRESH_NS UINT64_C(100000000)

static struct {
        bool is_enabled;
        ElfFile *file; /* NULL: none */
        struct stat st;
        uint64_t since_ns;
} kept;

static bool is_same_time(const struct timespec *a, const struct timespec *b) {
        return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_unchanged(const struct stat *st) {
        return st->st_dev == kept.st.st_dev && st->st_ino == kept.st.st_ino &&
               st->st_size == kept.st.st_size && is_same_time(&st->st_mtim, &kept.st.st_mtim) &&
               is_same_time(&st->st_ctim, &kept.st.st_ctim);
}

static bool is_same_root(const Root *a, const Root *b) {
        struct stat one, other;

        if (a->fd < 0 || b->fd < 0)
                return a->fd < 0 && b->fd < 0;
        return fstat(a->fd, &one) >= 0 && fstat(b->fd, &other) >= 0 && one.st_dev == other.st_dev &&
               one.st_ino == other.st_ino;
}

static void drop(void) {
        bool is_enabled = kept.is_enabled;

        kept.is_enabled = false;
        kept.file = elf_file_free(kept.file);
        kept.is_enabled = is_enabled;
}

void kept_file_enable(bool enable) {
        kept.is_enabled = enable;
        if (!enable)
                drop();
}

ElfFile *kept_file_take(const Root *root, const char *path, int fd) {
        struct stat st;

        if (!kept.file)
                return NULL;
        if (fstat(fd, &st) < 0 || !is_unchanged(&st) || now_ns() - kept.since_ns > FRESH_NS ||
            !streq(path, kept.file->inner_path) || !is_same_root(root, &kept.file->root)) {
                drop();
                return NULL;
        }
        return TAKE_PTR(kept.file);
}

bool kept_file_put(ElfFile *elf) {
        if (!kept.is_enabled || !elf->is_open)
                return false;
        drop();
        if (fstat(elf->fd, &kept.st) < 0)
                return false;
        kept.file = elf;
        kept.since_ns = now_ns();
        return true;
}
