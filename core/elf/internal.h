/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_INTERNAL_H
#define ELF_INTERNAL_H

#include <gelf.h>
#include <sys/stat.h>

#include "base/root.h"
#include "elf/debug-file.h"
#include "elf/file.h"
#include "elf/function-code.h"
#include "elf/go-table.h"
#include "elf/symbol.h"

/* The insides of an ELF file, for what looks into its code. Addresses are those in the file. */

#define CODE_SIZE_MAX     (UINT64_C(1) << 20) /* of a function */
#define FUNCTION_NAME_MAX 1024 /* with a zero at the end: longer ones are not shown */

struct ElfFile {
        char *path;
        char *build_id;
        int fd;
        struct stat stat;  /* before any of it was read */
        uint64_t since_ns; /* when that was */
        bool is_settled;   /* whoever writes to it from then on changes its times */
        Elf *elf;
        Root root;                   /* the tree that it is in */
        char *inner_path;            /* its path there */
        const char *debug_directory; /* not owned */
        ElfDebugFinder debug_finder; /* NULL: there is none */
        void *debug_finder_data;
        DebugFiles debug;
        GoTable go;
        bool has_read_go;
        bool has_symbols;   /* were they asked for? */
        bool is_patient;    /* elf_file_set_patient() */
        bool ignores_links; /* elf_file_ignore_links() */
        bool is_altered;    /* by one of elf_file_set_...(), or not opened as a program */
};

static inline uint64_t elf_file_size(const ElfFile *elf) {
        return (uint64_t) elf->stat.st_size;
}

/* What elf_file_free() does with one that is not to be kept; takes NULL. */
void elf_file_close(ElfFile *elf);

/* As elf_file_open_in(), also if it is neither a program nor a library: its DWARF is wanted. */
int elf_file_open_dwarf_in(const Root *root, const char *path, ElfFile **ret);

/* In hexadecimal; the caller's. NULL: too short, too long, or for want of memory. */
char *elf_build_id_to_hex(const void *data, size_t size);

/* That of elf/recent.h, if it is the file that was opened; the caller's then, else NULL. */
ElfFile *elf_recent_take(const ElfFile *opened);

/* Keeps it as the recent one, and owns it then; false: it is none that is kept. */
bool elf_recent_keep(ElfFile *elf);

/*
 * All functions of the file, and those that it exports. The former are in a separate debug file or
 * in .gnu_debugdata if it was stripped. The first one opens these, if they are there, and reads
 * what Go has written of its own functions.
 */
void elf_file_load_symbols(ElfFile *elf, SymbolTable tables[static 2]);
void elf_file_get_symbols(const ElfFile *elf, SymbolTable tables[static 2]);

/* Finds the code segment of an address, or of an offset in the file when by_offset. */
bool elf_file_find_code(const ElfFile *elf, uint64_t value, bool by_offset, GElf_Phdr *ret);

/* From an address in a segment to the offset in the file, and back. */
static inline uint64_t segment_offset(const GElf_Phdr *phdr, uint64_t address) {
        return address - phdr->p_vaddr + phdr->p_offset;
}

static inline uint64_t segment_address(const GElf_Phdr *phdr, uint64_t offset) {
        return offset - phdr->p_offset + phdr->p_vaddr;
}

/*
 * The name of the function at that address, without its version; NULL if there is none that can be
 * shown.
 */
int elf_file_name_function(const ElfFile *elf, uint64_t address, char **ret);

/*
 * Where the function at an address begins, and its size: by its symbols, the table of Go, or
 * .eh_frame.
 */
bool elf_file_extent_at(const ElfFile *elf, uint64_t address, uint64_t *ret_start,
                        uint64_t *ret_size);

/*
 * Reads code; *ret is the caller's. -EFBIG, -ENOEXEC: it is not in the file, or more than any
 * function has.
 */
int elf_file_read_code(const ElfFile *elf, uint64_t address, uint64_t size, uint8_t **ret);

/* Reads the word at an address. -ENOEXEC: it is not in the file. */
int elf_file_read_word(const ElfFile *elf, uint64_t address, uint64_t *ret);

/*
 * Does any word of its data, or what the loader puts there, point to an instruction of that code,
 * other than its first?
 */
bool elf_file_points_into(const ElfFile *elf, const FunctionCode *code);

/* Is it "file.c:123"? *ret_length is that of the file's name. */
bool line_site_parse(const char *site, size_t *ret_length, unsigned *ret_line);

/* As elf_file_resolve() does of these. */
int elf_file_resolve_line(ElfFile *elf, const char *site, ElfSite *ret, char **ret_error);

#endif
