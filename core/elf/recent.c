/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Only one of which symbols were read is worth it. It is gone before names are looked up in another
 * one, so that there is hardly more in memory than without.
 *
 * Linux before 6.13 notes when a file was changed by a clock that goes in steps of up to 10 ms: a
 * file that was changed just now could be changed again, and have the same times.
 */

#include "elf/recent.h"

#include "base/clock.h"
#include "base/io.h"
#include "elf/internal.h"

/* A debug file that is installed meanwhile is found after that. */
#define AGE_NS_MAX UINT64_C(2000000000)

static bool is_wanted;
static ElfFile *recent;

void elf_recent_begin(void) {
        is_wanted = true;
}

bool elf_recent_is_there(void) {
        return recent != NULL;
}

void elf_recent_drop(void) {
        elf_file_close(TAKE_PTR(recent));
}

static bool is_same_time(struct timespec a, struct timespec b) {
        return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_unchanged(const struct stat *a, const struct stat *b) {
        return stat_is_of_same_file(a, b) && a->st_size == b->st_size &&
               is_same_time(a->st_mtim, b->st_mtim) && is_same_time(a->st_ctim, b->st_ctim);
}

static bool is_same_root(const Root *a, const Root *b) {
        struct stat x, y;

        if (a->fd < 0 || b->fd < 0)
                return a->fd < 0 && b->fd < 0;
        return fstat(a->fd, &x) >= 0 && fstat(b->fd, &y) >= 0 && stat_is_of_same_file(&x, &y);
}

ElfFile *elf_recent_take(const ElfFile *opened) {
        if (!recent || !streq(recent->path, opened->path) ||
            !streq(recent->inner_path, opened->inner_path) ||
            !is_same_root(&recent->root, &opened->root) ||
            !is_unchanged(&recent->stat, &opened->stat) || now_ns() - recent->since_ns > AGE_NS_MAX)
                return NULL;
        return TAKE_PTR(recent);
}

bool elf_recent_keep(ElfFile *elf) {
        if (!is_wanted || !elf->has_symbols || elf->is_altered || !elf->is_settled)
                return false;
        elf_recent_drop();
        recent = elf;
        return true;
}
