/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_GO_TABLE_H
#define ELF_GO_TABLE_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#include "base/near-name.h"
#include "elf/symbol.h"

/*
 * .gopclntab: the table in which the runtime of Go finds the functions of its program. It stays in
 * programs that were stripped.
 */

typedef struct GoTable {
        const uint8_t *data; /* owned by the Elf */
        size_t size;
        size_t names;     /* where the names begin */
        size_t names_end; /* no name begins at or behind that: the last NUL of the table */
        size_t entries;   /* where the list of functions begins */
        size_t details;   /* what its entries count from, to where more is told of each of them */
        size_t width;     /* of a number in the list */
        size_t n;         /* functions; 0: there is no table, or it cannot be read */
        uint64_t text;    /* what their addresses count from */
        bool is_relative; /* they do count from there: it is Go 1.18, or a later one */
} GoTable;

/* That of the file, as far as it is understood. */
void go_table_load(Elf *elf, GoTable *ret);

/* Looks for the functions of that name. */
void go_table_find(const GoTable *table, const SymbolName *name, SymbolMatch *match);

/*
 * The function that address lies in; its end is where the next one begins. False if there is none.
 */
bool go_table_function_at(const GoTable *table, uint64_t address, SymbolFunction *ret);

/* As symbol_table_visit() and symbol_table_offer(). */
int go_table_visit(const GoTable *table,
                   int (*visitor)(const SymbolFunction *function, void *userdata), void *userdata);
size_t go_table_offer(const GoTable *table, NearNames *names);

#endif
