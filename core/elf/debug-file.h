/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_DEBUG_FILE_H
#define ELF_DEBUG_FILE_H

#include <libelf.h>
#include <stdbool.h>

/*
 * What was taken out of a file when it was stripped: a separate debug file, or the names of its
 * functions, compressed in itself. And what was taken out of debug files because several have it.
 */

typedef struct ElfFile ElfFile;

typedef struct DebugFiles {
        ElfFile *separate;  /* owned; NULL: there is none, or it was not looked for yet */
        Elf *mini;          /* the same, of .gnu_debugdata */
        void *mini_image;   /* the memory that it is in */
        char *other_build;  /* where a separate one should be is one of another build */
        ElfFile *common;    /* as separate: what several files have in common */
        char *other_common; /* the same as other_build, of that */
        bool has_looked;    /* for a separate one */
        bool has_looked_common;
        bool is_fetched; /* the separate one is from the finder of elf_file_set_debug_finder() */
        bool has_asked;  /* that finder */
        bool has_unpacked;
} DebugFiles;

void debug_files_done(DebugFiles *files);

/*
 * The separate debug file of the same build, owned by elf: by its build-id below the debug
 * directory (.build-id), or by its .gnu_debuglink, next to it, in .debug there, or in its place
 * below the debug directory. Each in the tree that elf is in, then in ours. NULL: there is none.
 */
ElfFile *elf_file_open_debug(ElfFile *elf);

/*
 * The file that the DWARF in elf itself refers to for what it has in common with that of others
 * (dwz -m), owned by elf: by its build-id, as above, or by the path in .gnu_debugaltlink. NULL:
 * there is none.
 */
ElfFile *elf_file_open_common(ElfFile *elf);

#endif
