/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A process goes on with the files that it has mapped, whatever an upgrade puts at their paths. The
 * old ones can still be opened: by root through /proc/PID/map_files, which Linux also refuses to
 * root without CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE, and the program through /proc/PID/exe.
 *
 * Which of the ways leads to the right file is told by device and inode of the mapping, not by the
 * name: a file can be called "x (deleted)", and another file system can be mounted above it.
 */

#include "suggest/mapping.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/program.h"
#include "base/sentence.h"

static const char deleted[] = " (deleted)";

void mapping_done(Mapping *mapping) {
        free(mapping->name);
        *mapping = (Mapping) {};
}

void path_strip_deleted(char *path) {
        size_t n = strlen(path), m = strlen(deleted);

        if (n > m && streq(path + n - m, deleted))
                path[n - m] = '\0';
}

static int take_name(const char *line, Mapping *mapping) {
        const char *name = strchr(line, '/');

        if (!name || mapping->identity.inode == 0)
                return -ENOENT;
        mapping->name = strndup(name, strcspn(name, "\n"));
        return mapping->name ? 0 : -ENOMEM;
}

int mapping_find(pid_t pid, uint64_t begin, Mapping *ret) {
        _cleanup_fclose_ FILE *f = NULL;
        _cleanup_free_ char *line = NULL;
        Mapping mapping = { .pid = pid };
        FileMapping piece;
        char path[64];
        size_t size = 0;
        int r;

        (void) snprintf(path, sizeof(path), "/proc/%i/maps", pid);
        f = fopen(path, "re");
        if (!f)
                return -errno;
        while (getline(&line, &size, f) > 0) {
                if (!file_parse_mapping(line, &piece) || piece.begin != begin)
                        continue;
                mapping.begin = begin;
                mapping.end = piece.end;
                mapping.identity = piece.identity;
                r = take_name(line, &mapping);
                if (r >= 0)
                        *ret = mapping;
                return r;
        }
        return -ENOENT;
}

/* Returns 0, -ESTALE if another file is there, or as elf_file_open(). Takes path. */
static int open_same(const Mapping *mapping, char *path, ElfFile **ret) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        MappedIdentity identity;
        int r;

        r = path ? elf_file_open(path, &elf, NULL) : -ENOMEM;
        free(path);
        if (r < 0)
                return r;
        identity = file_identify_mapping(elf_file_fd(elf));
        if (!mapped_identity_equal(&identity, &mapping->identity))
                return -ESTALE;
        *ret = TAKE_PTR(elf);
        return 0;
}

/* By its path, of which the process may have another view than we do, or another root. */
static int open_kept(const Mapping *mapping, ElfFile **ret) {
        int r;

        r = open_same(mapping, sentence_make("/proc/%i/root%s", mapping->pid, mapping->name), ret);
        return r == 0 || r == -ENOMEM ? r : open_same(mapping, strdup(mapping->name), ret);
}

static int open_old(const Mapping *mapping, ElfFile **ret) {
        int r;

        r = open_same(mapping,
                      sentence_make("/proc/%i/map_files/%" PRIx64 "-%" PRIx64, mapping->pid,
                                    mapping->begin, mapping->end),
                      ret);
        return r == 0 || r == -ENOMEM
                       ? r
                       : open_same(mapping, sentence_make("/proc/%i/exe", mapping->pid), ret);
}

/* Names a file that is not at its path any more. */
static int name_old(const Mapping *mapping, ElfFile *elf, FileFate *ret_fate) {
        _cleanup_free_ char *path = strdup(mapping->name), *outside = NULL;
        int r;

        if (!path)
                return -ENOMEM;
        path_strip_deleted(path);
        outside = sentence_make("/proc/%i/root%s", mapping->pid, path);
        if (!outside)
                return -ENOMEM;
        r = elf_file_set_name(elf, path);
        if (r >= 0)
                *ret_fate = access(outside, F_OK) == 0 ? FILE_REPLACED : FILE_DELETED;
        return r;
}

int mapping_open(const Mapping *mapping, ElfFile **ret, FileFate *ret_fate) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        FileFate fate = FILE_KEPT;
        int r;

        r = open_kept(mapping, &elf);
        if (r == 0) {
                r = elf_file_set_name(elf, mapping->name);
        } else if (r != -ENOMEM) {
                r = open_old(mapping, &elf);
                if (r == 0)
                        r = name_old(mapping, elf, &fate);
        }
        if (r < 0)
                return r == -ENOMEM ? r : -ENOENT;
        *ret = TAKE_PTR(elf);
        *ret_fate = fate;
        return 0;
}

bool mapping_is_program(const Mapping *mapping) {
        _cleanup_free_ char *program = NULL;

        return program_of_process((uint32_t) mapping->pid, &program) >= 0 &&
               streq(program, mapping->name);
}
