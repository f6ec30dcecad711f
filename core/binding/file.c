/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What is known of the file of a binding once it has been read. Reading can take for ever, and
 * takes memory as the file says; so it is done once, elsewhere perhaps, and from then on nobody
 * reads in the file again.
 */

#include "binding/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

static uint64_t time_ns(const struct timespec *time) {
        return (uint64_t) time->tv_sec * 1000000000 + (uint64_t) time->tv_nsec;
}

static uint64_t time_of_birth(int fd) {
        struct statfs fs;
        struct statx st;

        if (fstatfs(fd, &fs) < 0 || (long) fs.f_type != OVERLAYFS_SUPER_MAGIC ||
            statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) < 0 || !(st.stx_mask & STATX_BTIME))
                return 0;
        return (uint64_t) st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
}

FileStamp file_stamp_of(int fd, const struct stat *st) {
        return (FileStamp) {
                .size = (uint64_t) st->st_size,
                .mtime_ns = time_ns(&st->st_mtim),
                .ctime_ns = time_ns(&st->st_ctim),
                .born_ns = time_of_birth(fd),
        };
}

/* A line: "7f0000-7f1000 r-xp 00000000 08:01 1234      /usr/lib/libc.so.6". */
bool file_parse_mapping(const char *line, FileMapping *ret) {
        unsigned major_number, minor_number;
        FileMapping mapping;
        uint64_t inode;
        char may_execute;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*2c%c%*c %" SCNx64 " %x:%x %" SCNu64,
                   &mapping.begin, &mapping.end, &may_execute, &mapping.offset, &major_number,
                   &minor_number, &inode) != 7)
                return false;
        mapping.is_code = may_execute == 'x';
        mapping.identity = (MappedIdentity) { makedev(major_number, minor_number), inode };
        *ret = mapping;
        return true;
}

static MappedIdentity find_mapping(uint64_t address) {
        _cleanup_fclose_ FILE *f = fopen("/proc/self/maps", "re");
        _cleanup_free_ char *line = NULL;
        FileMapping mapping;
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0)
                if (file_parse_mapping(line, &mapping) && mapping.begin == address)
                        return mapping.identity;
        return (MappedIdentity) {};
}

MappedIdentity file_identify_mapping(int fd) {
        MappedIdentity identity;
        void *p;

        p = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
                return (MappedIdentity) {};
        identity = find_mapping((uintptr_t) p);
        (void) munmap(p, 1);
        return identity;
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
