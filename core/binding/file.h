/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_FILE_H
#define BINDING_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "elf/file.h"

/* How a file was last written, besides its device and inode; times since the epoch. */
typedef struct FileStamp {
        uint64_t size;
        uint64_t mtime_ns;
        uint64_t ctime_ns;
        /*
         * On an overlay, when the file of the layer was made: what is changed there is copied to
         * the upper layer first, and programs run the copy from then on. 0: elsewhere, or it is not
         * known.
         */
        uint64_t born_ns;
} FileStamp;

/* Of what is open there, which may be so by O_PATH; st is of it. */
struct stat;
FileStamp file_stamp_of(int fd, const struct stat *st);

/*
 * A file in /proc/PID/maps, whatever its path there: on some file systems (btrfs, overlayfs) device
 * and inode are not those of stat().
 */
typedef struct MappedIdentity {
        dev_t device;
        ino_t inode; /* 0: not known */
} MappedIdentity;

/* Also if neither is known. */
static inline bool mapped_identity_equal(const MappedIdentity *a, const MappedIdentity *b) {
        return a->inode == b->inode && a->device == b->device;
}

/* As this process sees it. It maps the file for a moment. */
MappedIdentity file_identify_mapping(int fd);

/* What a line of /proc/PID/maps says. */
typedef struct FileMapping {
        uint64_t begin, end; /* addresses */
        uint64_t offset;     /* of what lies at begin, in the file */
        bool is_code;        /* it can be executed */
        MappedIdentity identity;
} FileMapping;

bool file_parse_mapping(const char *line, FileMapping *ret);

/*
 * The file that a binding was resolved in, as whoever sets its probes needs it: opened, and with
 * all that has to be read in it read already. It may be on a file system that does not answer any
 * more.
 */
typedef struct BindingFile {
        int fd;          /* -EBADF: it has none, see binding_has_file() */
        bool is_program; /* see elf_file_is_program() */
} BindingFile;

/* A new one, of nothing yet. NULL for want of memory. */
BindingFile *binding_file_new(void);
BindingFile *binding_file_free(BindingFile *file);
DEFINE_CLEANUP(BindingFile, binding_file_free);

/* Reads what is needed of the file that elf has opened. Returns 0 or a negative errno. */
int binding_file_read(ElfFile *elf, BindingFile **ret);

#endif
