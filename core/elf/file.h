/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_FILE_H
#define ELF_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/root.h"

/*
 * An executable or shared library as a place to put probes: from names to file offsets. Files come
 * from whoever runs the services, so nothing in them is trusted.
 */

typedef struct ElfFile ElfFile;

/* How a place is written that is a USDT probe: "usdt:provider:name". */
#define USDT_PLACE     "usdt:"
#define ELF_PLACES_MAX 1024 /* that one of them can be at */

/* One of the places of a USDT probe. */
typedef struct ElfPlace {
        uint64_t offset;
        uint64_t semaphore; /* the offset of a counter of who traces it; 0: there is none */
} ElfPlace;

/* A place in the file where a probe can sit. */
typedef struct ElfSite {
        uint64_t offset;   /* in the file, past a leading endbr64 when asked by symbol */
        char *function;    /* the symbol that it lies in, NULL if none is known; owned */
        uint64_t distance; /* from the beginning of that; 0 also past its endbr64 */
        /* A USDT probe: all its places, by their offsets, the first of which is above; owned */
        ElfPlace *places;
        size_t n_places; /* 0: it is none */
        /* Of a semaphore the kernel takes another mapping for its own as a process starts. */
        bool is_miscounted;
} ElfSite;

void elf_site_done(ElfSite *site);

/* Is the offset one of its places? */
bool elf_site_has(const ElfSite *site, uint64_t offset);

/*
 * Opens path. Fails with a negative errno and a sentence in *ret_error that names the file:
 * -ENOENT, -EACCES and the like from open(), -EISDIR or -EINVAL for what is not a regular file,
 * -ENOEXEC for what is not ELF, not an executable or library, or for another machine.
 */
int elf_file_open(const char *path, ElfFile **ret, char **ret_error);

/* The same of a path in that tree; everyone else is told the path from outside. */
int elf_file_open_in(const Root *root, const char *path, ElfFile **ret, char **ret_error);
ElfFile *elf_file_free(ElfFile *elf);
DEFINE_CLEANUP(ElfFile, elf_file_free);

/* What it is called from now on, in sentences and by elf_file_path(). Returns 0 or -ENOMEM. */
int elf_file_set_name(ElfFile *elf, const char *name);

/*
 * The opened file, owned by elf: what is resolved here is what gets the probe, whatever happens to
 * the path.
 */
int elf_file_fd(const ElfFile *elf);

/* As it was before any of it was read; owned by elf. */
const struct stat *elf_file_stat(const ElfFile *elf);

/* The path as opened, owned by elf. */
const char *elf_file_path(const ElfFile *elf);

/* The GNU build-id in hexadecimal, owned by elf; NULL if there is none. */
const char *elf_file_build_id(const ElfFile *elf);

/* Other files that it names, of debug information, are not opened: it is somebody else's. */
void elf_file_ignore_links(ElfFile *elf);

/*
 * Where separate debug files are looked for; /usr/lib/debug at first. directory must outlive elf.
 * See elf/debug-file.h.
 */
void elf_file_set_debug_directory(ElfFile *elf, const char *directory);

/*
 * Asked once for the separate debug file of one that has a build-id, if names of its functions are
 * in none of these places, nor in itself. Returns its path, which is the caller's, or NULL. Only a
 * file of that build is taken.
 */
typedef char *(*ElfDebugFinder)(const ElfFile *elf, void *userdata);
void elf_file_set_debug_finder(ElfFile *elf, ElfDebugFinder finder, void *userdata);

/*
 * Somebody waits for what is wrong with a name, and has half a second for it: whether a function
 * was inlined is in no table.
 */
void elf_file_set_patient(ElfFile *elf, bool patient);

/*
 * True if it is a program that nothing else can be loaded into, or be loaded into another: one by
 * its type, or by a flag that linkers set since 2015. False for libraries, also for those that can
 * be run.
 */
bool elf_file_is_program(const ElfFile *elf);

/*
 * Resolves a probe site as written in the configuration: "symbol", "symbol@VERSION",
 * "symbol+0x1c", "0x12a0" (a file offset), "file.c:123" (elf/line-table.h) or "usdt:provider:name"
 * (elf/usdt.h). A symbol can also be what it is called in the source (elf/declared-name.h). It is
 * looked for in .symtab, that of the separate debug file or in .gnu_debugdata if the file was
 * stripped, then in .dynsym. Fails with a negative errno and a sentence in *ret_error:
 *
 * - -EINVAL: not a site
 * - -ESRCH: no such symbol, line or USDT probe; the sentence lists near ones
 * - -ERANGE: outside the file, the executable segments or the function
 * - -ENOTUNIQ: several functions of this name or with this line, at different places
 * - -EOPNOTSUPP: an indirect function (IFUNC), or a USDT probe that cannot be used
 */
int elf_file_resolve(ElfFile *elf, const char *site, ElfSite *ret, char **ret_error);

/*
 * Where a probe belongs on a function that begins at that offset: past an endbr64, which is
 * single-stepped, or a nop that may be replaced (probe_is_on_nop5()), unless a probe behind that
 * does harm, or is refused.
 */
uint64_t elf_file_place_entry(const ElfFile *elf, uint64_t offset);

/* True if the Go tool chain made it: its functions move between threads while they run. */
bool elf_file_is_go(const ElfFile *elf);

/* True if Go's own table of its functions is there, and understood. */
bool elf_file_has_go_table(const ElfFile *elf);

#endif
