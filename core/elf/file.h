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

/* A place in the file where a probe can sit. */
typedef struct ElfSite {
        uint64_t offset;   /* in the file, past a leading endbr64 when asked by symbol */
        char *function;    /* the symbol that it lies in, NULL if none is known; owned */
        uint64_t distance; /* from the beginning of that; 0 also past its endbr64 */
} ElfSite;

void elf_site_done(ElfSite *site);

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

/*
 * The opened file, owned by elf: what is resolved here is what gets the probe, whatever happens to
 * the path.
 */
int elf_file_fd(const ElfFile *elf);

/* The path as opened, owned by elf. */
const char *elf_file_path(const ElfFile *elf);

/* The GNU build-id in hexadecimal, owned by elf; NULL if there is none. */
const char *elf_file_build_id(const ElfFile *elf);

/*
 * Where separate debug files are looked for; /usr/lib/debug at first. directory must outlive elf.
 * See elf/debug-file.h.
 */
void elf_file_set_debug_directory(ElfFile *elf, const char *directory);

/*
 * True if it is a program that nothing else can be loaded into, or be loaded into another: one by
 * its type, or by a flag that linkers set since 2015. False for libraries, also for those that can
 * be run.
 */
bool elf_file_is_program(const ElfFile *elf);

/*
 * Resolves a probe site as written in the configuration: "symbol", "symbol@VERSION",
 * "symbol+0x1c", "0x12a0" (a file offset) or "file.c:123" (elf/line-table.h). A symbol can also be
 * what it is called in the source (elf/declared-name.h). It is looked for in .symtab, that of the
 * separate debug file or in .gnu_debugdata if the file was stripped, then in .dynsym. Fails with a
 * negative errno and a sentence in *ret_error:
 *
 * - -EINVAL: not a site
 * - -ESRCH: no such symbol or line; the sentence lists near ones
 * - -ERANGE: outside the file, the executable segments or the function
 * - -ENOTUNIQ: several functions of this name or with this line, at different places
 * - -EOPNOTSUPP: an indirect function (IFUNC), a USDT probe
 */
int elf_file_resolve(ElfFile *elf, const char *site, ElfSite *ret, char **ret_error);

/* Past the endbr64 that may be at that offset. */
uint64_t elf_file_skip_endbr64(const ElfFile *elf, uint64_t offset);

/* True if the Go tool chain made it: its functions move between threads while they run. */
bool elf_file_is_go(const ElfFile *elf);

#endif
