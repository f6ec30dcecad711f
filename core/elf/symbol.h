/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_SYMBOL_H
#define ELF_SYMBOL_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/near-name.h"

/* The symbol tables of an ELF file, read with suspicion. */

#define SYMBOL_PLACES_MAX 4

typedef struct SymbolTable {
        Elf_Data *symbols;  /* owned by the Elf */
        Elf_Data *versions; /* the same; NULL if there are none */
        const char *strings;
        size_t strings_size; /* strings[strings_size - 1] is NUL */
        size_t n;
        bool is_unreadable; /* it is there, but damaged, or larger than there is memory for */
} SymbolTable;

/* What a name stands for in one table. */
typedef struct SymbolMatch {
        uint64_t places[SYMBOL_PLACES_MAX]; /* addresses where a function of that name is */
        size_t n_places;                    /* distinct ones, at most SYMBOL_PLACES_MAX */
        uint64_t size;                      /* of the function, 0 if unknown */
        bool current;                       /* found with its default version, or without any */
        bool indirect;                      /* it is an IFUNC */
        bool imported;                      /* it is in the table, but defined elsewhere */
        bool data;                          /* it is in the table, but not a function */
} SymbolMatch;

/* Returns false if it is there already; one too many is left out. */
bool symbol_match_add_place(SymbolMatch *match, uint64_t address);

/*
 * The table of that section type (SHT_SYMTAB, SHT_DYNSYM). An absent or unreadable table is an
 * empty one.
 */
void symbol_table_load(Elf *elf, uint32_t type, SymbolTable *ret);

/*
 * Looks for a function by its name without version. Where several versions of it are at different
 * places, only the default one counts.
 */
void symbol_table_find(const SymbolTable *table, const char *name, size_t length,
                       SymbolMatch *match);

/*
 * The name, with its version, of the function that address lies in, owned by the Elf; NULL if there
 * is none.
 */
const char *symbol_table_function_at(const SymbolTable *table, uint64_t address);

/* Where the largest function that address lies in begins, and its size. False if there is none. */
bool symbol_table_extent_at(const SymbolTable *table, uint64_t address, uint64_t *ret_start,
                            uint64_t *ret_size);

typedef struct SymbolFunction {
        const char *name; /* with its version; owned by the Elf */
        uint64_t address;
        uint64_t size; /* 0: not known */
} SymbolFunction;

/*
 * Calls the visitor for each function that is defined here, but for IFUNCs and versions that are
 * not the default one, until it returns something else than 0. Returns what it has returned last.
 */
int symbol_table_visit(const SymbolTable *table,
                       int (*visitor)(const SymbolFunction *function, void *userdata),
                       void *userdata);

/* Offers the names of all functions that are defined here. Returns their number. */
size_t symbol_table_offer(const SymbolTable *table, NearNames *names);

#endif
