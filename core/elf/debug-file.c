/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Finds what belongs to a stripped file. Where to look comes from the file itself: a build-id is
 * only used as hexadecimal digits, and a .gnu_debuglink must be a plain name, so that it leads no
 * further than its directories. What is found there counts if it is of the same build: by the
 * build-id, or, for files without one, by the checksum that comes with the link. A name that was
 * found in another build would be at another place.
 */

#include "elf/debug-file.h"

#include <elfutils/libdwelf.h>
#include <lzma.h>
#include <sys/stat.h>

#include "base/io.h"
#include "elf/internal.h"
#include "elf/mini-debug.h"
#include "elf/read.h"

#define CHECKSUM_SIZE_MAX (UINT64_C(512) << 20)
#define CHUNK             65536

void debug_files_done(DebugFiles *files) {
        elf_file_close(files->separate);
        if (files->mini)
                (void) elf_end(files->mini);
        free(files->mini_image);
        free(files->other_build);
        *files = (DebugFiles){};
}

static bool has_checksum(const ElfFile *file, uint32_t wanted) {
        _cleanup_free_ unsigned char *chunk = malloc(CHUNK);
        uint64_t offset = 0;
        uint32_t crc = 0;
        ssize_t n;

        if (!chunk || elf_file_size(file) > CHECKSUM_SIZE_MAX)
                return false;
        while ((n = elf_read(file->fd, chunk, CHUNK, offset)) > 0) {
                crc = lzma_crc32(chunk, (size_t) n, crc);
                offset += (uint64_t) n;
                if (offset > CHECKSUM_SIZE_MAX)
                        return false;
        }
        return n == 0 && crc == wanted;
}

/* What a debug file must be. */
typedef struct Wanted {
        ElfFile *elf;
        bool has_checksum;
        uint32_t checksum;
} Wanted;

static bool is_wanted(const ElfFile *file, const Wanted *wanted) {
        if (wanted->elf->build_id)
                return streq_empty(file->build_id, wanted->elf->build_id);
        return wanted->has_checksum && has_checksum(file, wanted->checksum);
}

static ElfFile *open_at(const Root *root, const char *path, const Wanted *wanted) {
        _cleanup_(elf_file_freep) ElfFile *file = NULL;
        DebugFiles *files = &wanted->elf->debug;

        if (elf_file_open_in(root, path, &file, NULL) < 0)
                return NULL;
        if (is_wanted(file, wanted))
                return TAKE_PTR(file);
        /* The link may name the file itself. */
        if (!files->other_build && !stat_is_of_same_file(&wanted->elf->stat, &file->stat))
                files->other_build = strdup(file->path);
        return NULL;
}

/* In the tree that the file is in, then in our own. */
static ElfFile *open_in_trees(const char *path, const Wanted *wanted) {
        ElfFile *found = open_at(&wanted->elf->root, path, wanted);

        if (!found && wanted->elf->root.fd >= 0)
                found = open_at(&ROOT_OWN, path, wanted);
        return found;
}

static ElfFile *find_by_build_id(ElfFile *elf) {
        const Wanted wanted = { .elf = elf };
        _cleanup_free_ char *path = NULL;

        if (!elf->build_id || strlen(elf->build_id) < 3)
                return NULL;
        if (asprintf(&path, "%s/.build-id/%.2s/%s.debug", elf->debug_directory, elf->build_id,
                     elf->build_id + 2) < 0) {
                path = NULL;
                return NULL;
        }
        return open_in_trees(path, &wanted);
}

/* before + directory + between + name */
static ElfFile *open_link(const char *const parts[static 4], const Wanted *wanted) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s%s%s%s", parts[0], parts[1], parts[2], parts[3]) < 0) {
                path = NULL;
                return NULL;
        }
        return open_in_trees(path, wanted);
}

static ElfFile *find_by_link(ElfFile *elf) {
        _cleanup_free_ char *directory = NULL;
        ElfFile *found = NULL;
        const char *name;
        GElf_Word crc;

        name = dwelf_elf_gnu_debuglink(elf->elf, &crc);
        if (!name || *name == '\0' || *name == '.' || strchr(name, '/') ||
            root_resolve(&elf->root, elf->inner_path, &directory) < 0)
                return NULL;
        *strrchr(directory, '/') = '\0';

        const Wanted wanted = { .elf = elf, .has_checksum = true, .checksum = crc };
        const char *const places[][4] = {
                { "", directory, "/", name },
                { "", directory, "/.debug/", name },
                { elf->debug_directory, directory, "/", name },
        };
        for (size_t i = 0; i < ELEMENTSOF(places) && !found; i++)
                found = open_link(places[i], &wanted);
        return found;
}

/* Once. Returns whether there is a separate file by that. */
static bool fetch(ElfFile *elf) {
        const Wanted wanted = { .elf = elf };
        _cleanup_free_ char *path = NULL;
        DebugFiles *files = &elf->debug;

        if (files->separate || files->has_asked || !elf->debug_finder || !elf->build_id)
                return false;
        files->has_asked = true;
        path = elf->debug_finder(elf, elf->debug_finder_data);
        if (path)
                files->separate = open_at(&ROOT_OWN, path, &wanted);
        files->is_fetched = files->separate;
        return files->is_fetched;
}

ElfFile *elf_file_open_debug(ElfFile *elf) {
        if (!elf->debug.has_looked) {
                elf->debug.has_looked = true;
                elf->debug.separate = find_by_build_id(elf) ?: find_by_link(elf);
        }
        return elf->debug.separate;
}

/* Takes the names from there if there are none yet. */
static bool take_symbols(Elf *elf, SymbolTable *table) {
        SymbolTable other;

        if (!elf || table->n > 0)
                return false;
        symbol_table_load(elf, SHT_SYMTAB, &other);
        if (other.n > 0)
                *table = other;
        return other.n > 0;
}

void elf_file_get_symbols(const ElfFile *elf, SymbolTable tables[static 2]) {
        const DebugFiles *debug = &elf->debug;

        symbol_table_load(elf->elf, SHT_SYMTAB, &tables[0]);
        (void) take_symbols(debug->separate ? debug->separate->elf : NULL, &tables[0]);
        if (take_symbols(debug->mini, &tables[0]))
                tables[0].is_partial = true;
        symbol_table_load(elf->elf, SHT_DYNSYM, &tables[1]);
}

void elf_file_load_symbols(ElfFile *elf, SymbolTable tables[static 2]) {
        elf->has_symbols = true;
        if (!elf->has_read_go) {
                elf->has_read_go = true;
                go_table_load(elf->elf, &elf->go);
        }
        elf_file_get_symbols(elf, tables);
        if (tables[0].n == 0 && elf_file_open_debug(elf))
                elf_file_get_symbols(elf, tables);
        if (tables[0].n == 0 && !elf->debug.has_unpacked) {
                elf->debug.has_unpacked = true;
                if (mini_debug_open(elf->elf, &elf->debug.mini, &elf->debug.mini_image))
                        elf_file_get_symbols(elf, tables);
        }
        if (tables[0].n == 0 && fetch(elf))
                elf_file_get_symbols(elf, tables);
}
