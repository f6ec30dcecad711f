/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From the bare name of a library to its file, as the dynamic loader goes: the program's RUNPATH,
 * ld.so.cache, then the default directories. Each candidate is opened and its header looked at
 * before it counts.
 *
 * The cache is glibc's file, in the format "glibc-ld.so.cache1.1": a header of 48 bytes, entries of
 * 24 bytes, and strings that entries point to from the beginning of the file. It is written by
 * root, but read here with every offset checked, like any file.
 *
 * Left out: LD_LIBRARY_PATH and the directories below glibc-hwcaps (entries with hwcap bits set),
 * which depend on the environment or on the processor. Those libraries can be given by their path.
 */

#include "elf/library.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/near-name.h"
#include "base/sentence.h"
#include "elf/dynamic.h"
#include "elf/file.h"
#include "elf/machine.h"
#include "elf/read.h"

#define CACHE_FILE     "/etc/ld.so.cache"
#define CACHE_MAGIC    "glibc-ld.so.cache1.1"
#define CACHE_SIZE_MAX ((size_t) 64 << 20)

typedef struct CacheHeader {
        char magic[sizeof(CACHE_MAGIC) - 1];
        uint32_t n_entries;
        uint32_t strings_size;
        uint32_t reserved[5];
} CacheHeader;

typedef struct CacheEntry {
        uint32_t flags;
        uint32_t name; /* offsets in the file */
        uint32_t path;
        uint32_t os_version;
        uint64_t hwcap;
} CacheEntry;

_Static_assert(sizeof(CacheHeader) == 48, "layout of ld.so.cache");
_Static_assert(sizeof(CacheEntry) == 24, "layout of ld.so.cache");

static const char *const default_directories[] = {
        "/lib/" MACHINE_MULTIARCH,
        "/usr/lib/" MACHINE_MULTIARCH,
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
};

/* The string at that offset, NULL if it is not inside the file with its NUL, or no path. */
static const char *cache_string(const uint8_t *data, size_t size, uint32_t offset) {
        size_t n = offset < size ? size - offset : 0;

        if (!memchr(data + offset, '\0', n < PATH_MAX ? n : PATH_MAX))
                return NULL;
        return (const char *) data + offset;
}

static uint32_t cache_size(const uint8_t *data, size_t size) {
        CacheHeader header;

        if (size < sizeof(header))
                return 0;
        memcpy(&header, data, sizeof(header));
        if (memcmp(header.magic, CACHE_MAGIC, sizeof(header.magic)) != 0 ||
            header.n_entries > (size - sizeof(header)) / sizeof(CacheEntry))
                return 0;
        return header.n_entries;
}

/* False if that entry is not of a library for this machine. */
static bool cache_get(const uint8_t *data, size_t size, size_t i, const char **ret_name,
                      const char **ret_path) {
        CacheEntry entry;

        memcpy(&entry, data + sizeof(CacheHeader) + i * sizeof(entry), sizeof(entry));
        if (entry.flags != MACHINE_CACHE_FLAGS || entry.hwcap != 0)
                return false;
        *ret_name = cache_string(data, size, entry.name);
        *ret_path = cache_string(data, size, entry.path);
        return *ret_name && *ret_path && (*ret_path)[0] == '/';
}

const char *library_cache_lookup(const void *cache, size_t size, const char *wanted) {
        uint32_t n = cache_size(cache, size);

        for (size_t i = 0; i < n; i++) {
                const char *name, *path;

                if (cache_get(cache, size, i, &name, &path) && streq(name, wanted))
                        return path;
        }
        return NULL;
}

static int read_cache(const Root *root, void **ret, size_t *ret_size) {
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ void *data = NULL;
        struct stat st;
        ssize_t n;

        fd = root_open(root, CACHE_FILE, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_size > (off_t) CACHE_SIZE_MAX)
                return -EINVAL;

        data = malloc((size_t) st.st_size + 1);
        if (!data)
                return -ENOMEM;
        n = elf_read(fd, data, (size_t) st.st_size, 0);
        if (n < 0)
                return (int) n;

        *ret = TAKE_PTR(data);
        *ret_size = (size_t) n;
        return 0;
}

/* Takes path if it is a library for this machine. */
static int accept_library(const Root *root, const char *path, char **ret_path) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        int r;

        r = elf_file_open_in(root, path, &elf, NULL);
        if (r >= 0)
                r = root_resolve(root, path, ret_path);
        return r < 0 && r != -ENOMEM ? -ENOENT : r;
}

static int find_in_cache(const Root *root, const char *name, char **ret_path) {
        _cleanup_free_ void *cache = NULL;
        const char *path;
        size_t size = 0;
        int r;

        r = read_cache(root, &cache, &size);
        if (r < 0)
                return r == -ENOMEM ? r : -ENOENT;
        path = library_cache_lookup(cache, size, name);
        return path ? accept_library(root, path, ret_path) : -ENOENT;
}

int library_near_names(const Root *root, const char *wanted, char **ret) {
        _cleanup_free_ void *cache = NULL;
        NearNames names;
        size_t size = 0;
        uint32_t n = 0;

        near_names_init(&names, wanted, strlen(wanted));
        if (read_cache(root, &cache, &size) >= 0)
                n = cache_size(cache, size);
        for (size_t i = 0; i < n; i++) {
                const char *name, *path;

                if (cache_get(cache, size, i, &name, &path))
                        near_names_offer(&names, name);
        }
        *ret = near_names_list(&names, NULL, NULL);
        return *ret ? 0 : -ENOMEM;
}

/* One directory of a RUNPATH, with $ORIGIN as the directory of the program. */
static int find_in_directory(const Root *root, const char *directory, size_t length,
                             const char *program, const char *name, char **ret_path) {
        static const char *const words[] = { "$ORIGIN", "${ORIGIN}" };
        const char *origin = "", *rest = directory;
        _cleanup_free_ char *path = NULL, *real = NULL;
        int r;

        for (size_t i = 0; i < ELEMENTSOF(words); i++) {
                size_t n = strlen(words[i]);

                if (length < n || strncmp(directory, words[i], n) != 0)
                        continue;
                r = root_resolve(root, program, &real);
                if (r < 0)
                        return r == -ENOMEM ? r : -ENOENT;
                *strrchr(real, '/') = '\0';
                origin = real;
                rest += n;
                length -= n;
                break;
        }
        r = asprintf(&path, "%s%.*s/%s", origin, (int) length, rest, name);
        if (r < 0) {
                path = NULL;
                return -ENOMEM;
        }
        return path[0] == '/' ? accept_library(root, path, ret_path) : -ENOENT;
}

static int find_in_run_path(const Root *root, const char *name, const char *program,
                            const char *run_path, char **ret_path) {
        int r = -ENOENT;

        for (const char *p = run_path; r == -ENOENT; p++) {
                size_t n = strcspn(p, ":");

                if (n < PATH_MAX)
                        r = find_in_directory(root, p, n, program, name, ret_path);
                p += n;
                if (*p == '\0')
                        break;
        }
        return r;
}

static int find_by_askers(const Root *root, const char *name, const char *const *askers,
                          char **ret_path) {
        int r = -ENOENT;

        for (size_t i = 0; askers[i] && r == -ENOENT; i++) {
                _cleanup_(elf_file_freep) ElfFile *elf = NULL;
                _cleanup_free_ char *run_path = NULL;
                bool is_inherited;

                r = elf_file_open_in(root, askers[i], &elf, NULL);
                if (r >= 0)
                        r = elf_file_run_path(elf, &is_inherited, &run_path);
                if (r == -ENOMEM)
                        return r;
                if (r > 0 && (i == 0 || is_inherited))
                        r = find_in_run_path(root, name, askers[i], run_path, ret_path);
                else
                        r = -ENOENT;
                if (run_path && !is_inherited && i == 0)
                        return r;
        }
        return r;
}

int library_find(const char *name, const char *program, char **ret_path) {
        return library_find_in(&ROOT_OWN, name, program, ret_path);
}

int library_find_in(const Root *root, const char *name, const char *program, char **ret_path) {
        const char *const askers[] = { program, NULL };

        return strchr(name, '/') ? -ENOENT : library_find_for(root, name, askers, ret_path);
}

int library_find_for(const Root *root, const char *name, const char *const *askers,
                     char **ret_path) {
        int r;

        if (*name == '/' && text_is_printable(name))
                return accept_library(root, name, ret_path);
        if (*name == '\0' || *name == '.' || strlen(name) > NAME_MAX || strchr(name, '/') ||
            !text_is_printable(name))
                return -ENOENT;

        r = find_by_askers(root, name, askers, ret_path);
        if (r == -ENOENT)
                r = find_in_cache(root, name, ret_path);
        for (size_t i = 0; i < ELEMENTSOF(default_directories) && r == -ENOENT; i++) {
                char path[PATH_MAX];

                (void) snprintf(path, sizeof(path), "%s/%s", default_directories[i], name);
                r = accept_library(root, path, ret_path);
        }
        return r;
}
