/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_SYMBOL_H
#define ELF_SYMBOL_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/near-name.h"
#include "elf/symbol-version.h"

/* The symbol tables of an ELF file, read with suspicion. */

#define SYMBOL_PLACES_MAX 4

typedef struct SymbolTable {
        const unsigned char *symbols; /* n times ElfW(Sym), not aligned; owned by the Elf */
        SymbolVersions versions;
        const char *strings;
        size_t strings_size; /* strings[strings_size - 1] is NUL */
        size_t n;
        bool is_unreadable; /* it is there, but damaged, or larger than there is memory for */
        bool is_partial;    /* it lacks those that are exported */
} SymbolTable;

/* A name as somebody asks for it. Neither text need end after its length. */
typedef struct SymbolName {
        const char *name;
        size_t length;
        const char *version; /* NULL: the default one */
        size_t version_length;
        bool wants_default; /* with a version: only if it is the default one, "name@@VERSION" */
} SymbolName;

/* What a name stands for in one table. */
typedef struct SymbolMatch {
        uint64_t places[SYMBOL_PLACES_MAX]; /* addresses where a function of that name is */
        size_t n_places;                    /* distinct ones, at most SYMBOL_PLACES_MAX */
        uint64_t size;                      /* of the function, 0 if unknown */
        bool current;                       /* found with its default version, or without any */
        bool indirect;                      /* it is an IFUNC */
        bool imported;                      /* it is in the table, but defined elsewhere */
        bool data;                          /* it is in the table, but not a function */
        bool other_version;                 /* it is there, but not with that version */
        bool is_declared;                   /* it is called so in the source, not in the table */
} SymbolMatch;

/* Returns false if it is there already; one too many is left out. */
bool symbol_match_add_place(SymbolMatch *match, uint64_t address);

/*
 * The table of that section type (SHT_SYMTAB, SHT_DYNSYM). An absent or unreadable table is an
 * empty one.
 */
void symbol_table_load(Elf *elf, uint32_t type, SymbolTable *ret);

/*
 * Looks for a function of that name and version. Where a name without a version has several at
 * different places, only the default one counts.
 */
void symbol_table_find(const SymbolTable *table, const SymbolName *name, SymbolMatch *match);

/*
 * Lists the versions of a function as they are to be written: "f@@V2, f@V1". NULL for want of
 * memory; "" if there are none.
 */
char *symbol_table_list_versions(const SymbolTable *table, const SymbolName *name);

/*
 * The name, with its version, of the function that address lies in, owned by the Elf; NULL if there
 * is none.
 */
const char *symbol_table_function_at(const SymbolTable *table, uint64_t address);

/* Where the largest function that address lies in begins, and its size. False if there is none. */
bool symbol_table_extent_at(const SymbolTable *table, uint64_t address, uint64_t *ret_start,
                            uint64_t *ret_size);

typedef struct SymbolFunction {
        const char *name; /* .symtab writes versions behind it; owned by the Elf */
        uint64_t address;
        uint64_t size;       /* 0: not known */
        bool is_old;         /* this is not the default version of that name */
        const char *version; /* the same owner; NULL: none, or it is in the name */
} SymbolFunction;

/*
 * Calls the visitor for each function that is defined here, but for IFUNCs, until it returns
 * something else than 0. Returns what it has returned last.
 */
int symbol_table_visit(const SymbolTable *table,
                       int (*visitor)(const SymbolFunction *function, void *userdata),
                       void *userdata);

/* Offers the names of all functions that are defined here. Returns their number. */
size_t symbol_table_offer(const SymbolTable *table, NearNames *names);

/* How many functions have a name that begins so. */
size_t symbol_table_count(const SymbolTable *table, const char *prefix);

#endif
