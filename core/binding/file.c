/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What is known of the file of a binding once it has been read. Reading can take for ever, and
 * takes memory as the file says; so it is done once, elsewhere perhaps, and from then on nobody
 * reads in the file again.
 */

#include "binding/file.h"

#include <fcntl.h>
#include <sys/stat.h>

static uint64_t time_ns(const struct timespec *time) {
        return (uint64_t) time->tv_sec * 1000000000 + (uint64_t) time->tv_nsec;
}

FileStamp file_stamp_of(const struct stat *st) {
        return (FileStamp){
                .size = (uint64_t) st->st_size,
                .mtime_ns = time_ns(&st->st_mtim),
                .ctime_ns = time_ns(&st->st_ctim),
        };
}

BindingFile *binding_file_new(void) {
        BindingFile *file = calloc(1, sizeof(*file));

        if (file)
                file->fd = -EBADF;
        return file;
}

BindingFile *binding_file_free(BindingFile *file) {
        if (!file)
                return NULL;
        safe_close(file->fd);
        free(file);
        return NULL;
}

int binding_file_read(ElfFile *elf, BindingFile **ret) {
        _cleanup_(binding_file_freep) BindingFile *file = binding_file_new();

        if (!file)
                return -ENOMEM;
        file->fd = fcntl(elf_file_fd(elf), F_DUPFD_CLOEXEC, 3);
        if (file->fd < 0)
                return -errno;
        file->is_program = elf_file_is_program(elf);
        *ret = TAKE_PTR(file);
        return 0;
}
