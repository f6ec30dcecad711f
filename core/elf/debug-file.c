/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Finds what belongs to a stripped file. Where to look comes from the file itself: a build-id is
 * only used as hexadecimal digits, and a .gnu_debuglink must be a plain name, so that it leads no
 * further than its directories. What is found there counts if it is of the same build: by the
 * build-id, or, for files without one, by the checksum that comes with the link. A name that was
 * found in another build would be at another place.
 *
 * A .gnu_debugaltlink is a path where distributions use it, absolute (Debian) or up from the debug
 * file (Fedora). Both lead below the debug directory, so it is followed to nowhere else, and else
 * must be a plain name, too.
 */

#include "elf/debug-file.h"

#include <elfutils/libdwelf.h>
#include <lzma.h>
#include <sys/stat.h>

#include "base/io.h"
#include "elf/internal.h"
#include "elf/mini-debug.h"
#include "elf/read.h"
#include "elf/section.h"

#define CHECKSUM_SIZE_MAX (UINT64_C(512) << 20)
#define CHUNK             65536
#define LINK_SIZE_MAX     8192

void debug_files_done(DebugFiles *files) {
        elf_file_close(files->separate);
        elf_file_close(files->common);
        if (files->mini)
                (void) elf_end(files->mini);
        free(files->mini_image);
        free(files->other_build);
        free(files->other_common);
        *files = (DebugFiles) {};
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
        ElfFile *elf;         /* what it belongs to */
        const char *build_id; /* NULL: the checksum counts */
        uint32_t checksum;
        bool is_common;
} Wanted;

static bool is_wanted(const ElfFile *file, const Wanted *wanted) {
        if (wanted->build_id)
                return streq_empty(file->build_id, wanted->build_id);
        return has_checksum(file, wanted->checksum);
}

static ElfFile *open_at(const Root *root, const char *path, const Wanted *wanted) {
        _cleanup_(elf_file_freep) ElfFile *file = NULL;
        DebugFiles *files = &wanted->elf->debug;
        char **other = wanted->is_common ? &files->other_common : &files->other_build;
        int r;

        r = wanted->is_common ? elf_file_open_dwarf_in(root, path, &file)
                              : elf_file_open_in(root, path, &file, NULL);
        if (r < 0)
                return NULL;
        if (is_wanted(file, wanted)) {
                file->debug_directory = wanted->elf->debug_directory;
                return TAKE_PTR(file);
        }
        /* The link may name the file itself. */
        if (!*other && !stat_is_of_same_file(&wanted->elf->stat, &file->stat))
                *other = strdup(file->path);
        return NULL;
}

/* In the tree that the file is in, then in our own. */
static ElfFile *open_in_trees(const char *path, const Wanted *wanted) {
        ElfFile *found = open_at(&wanted->elf->root, path, wanted);

        if (!found && wanted->elf->root.fd >= 0)
                found = open_at(&ROOT_OWN, path, wanted);
        return found;
}

static ElfFile *find_by_build_id(const Wanted *wanted) {
        const char *build_id = wanted->build_id;
        _cleanup_free_ char *path = NULL;

        if (!build_id || strlen(build_id) < 3)
                return NULL;
        if (asprintf(&path, "%s/.build-id/%.2s/%s.debug", wanted->elf->debug_directory, build_id,
                     build_id + 2) < 0) {
                path = NULL;
                return NULL;
        }
        return open_in_trees(path, wanted);
}

/* Does it lead no further than the directory that it is looked for in? */
static bool is_plain_name(const char *name) {
        return *name != '\0' && *name != '.' && !strchr(name, '/');
}

/* Without links on the way. NULL: it is not there any more, or for want of memory. */
static char *directory_of(const ElfFile *elf) {
        char *path = NULL;

        if (root_resolve(&elf->root, elf->inner_path, &path) < 0)
                return NULL;
        *strrchr(path, '/') = '\0';
        return path;
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

        if (elf->ignores_links)
                return NULL;
        name = dwelf_elf_gnu_debuglink(elf->elf, &crc);
        directory = name && is_plain_name(name) ? directory_of(elf) : NULL;
        if (!directory)
                return NULL;

        const Wanted wanted = { .elf = elf, .build_id = elf->build_id, .checksum = crc };
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
        const Wanted wanted = { .elf = elf, .build_id = elf->build_id };
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
        const Wanted wanted = { .elf = elf, .build_id = elf->build_id };

        if (!elf->debug.has_looked) {
                elf->debug.has_looked = true;
                elf->debug.separate = find_by_build_id(&wanted) ?: find_by_link(elf);
        }
        return elf->debug.separate;
}

static bool is_below(const char *path, const char *directory) {
        size_t n = strlen(directory);

        return strncmp(path, directory, n) == 0 && path[n] == '/' && !strstr(path, "/../");
}

/* Where the link leads to from where the file is; NULL: where it must not, or to nowhere. */
static char *relative_path(const ElfFile *elf, const char *link) {
        _cleanup_free_ char *directory = directory_of(elf), *top = NULL, *path = NULL;
        bool is_plain = is_plain_name(link);

        if (!directory)
                return NULL;
        for (; strncmp(link, "../", 3) == 0; link += 3) {
                char *slash = strrchr(directory, '/');

                if (slash)
                        *slash = '\0';
        }
        if (asprintf(&path, "%s/%s", directory, link) < 0) {
                path = NULL;
                return NULL;
        }
        if (!is_plain &&
            (root_resolve(&elf->root, elf->debug_directory, &top) < 0 || !is_below(path, top)))
                return NULL;
        return TAKE_PTR(path);
}

static ElfFile *find_by_common_link(const Wanted *wanted, const char *link) {
        _cleanup_free_ char *path = NULL;

        if (*link == '/')
                return is_below(link, wanted->elf->debug_directory) ? open_in_trees(link, wanted)
                                                                    : NULL;
        path = relative_path(wanted->elf, link);
        return path ? open_in_trees(path, wanted) : NULL;
}

/* The link is a path, and behind its end the build-id. */
static ElfFile *find_common(ElfFile *elf) {
        _cleanup_free_ char *build_id = NULL;
        const char *link, *end;
        GElf_Shdr header;
        Elf_Data *data;

        data = section_data(section_find_named(elf->elf, ".gnu_debugaltlink", &header),
                            LINK_SIZE_MAX);
        link = data ? data->d_buf : NULL;
        end = data ? memchr(link, '\0', data->d_size) : NULL;
        if (!end)
                return NULL;
        build_id = elf_build_id_to_hex(end + 1, data->d_size - (size_t) (end + 1 - link));
        if (!build_id)
                return NULL;

        const Wanted wanted = { .elf = elf, .build_id = build_id, .is_common = true };
        return find_by_build_id(&wanted) ?: find_by_common_link(&wanted, link);
}

ElfFile *elf_file_open_common(ElfFile *elf) {
        if (!elf->debug.has_looked_common) {
                elf->debug.has_looked_common = true;
                elf->debug.common = elf->ignores_links ? NULL : find_common(elf);
        }
        return elf->debug.common;
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
