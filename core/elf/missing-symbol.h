/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_MISSING_SYMBOL_H
#define ELF_MISSING_SYMBOL_H

#include <stdbool.h>

#include "elf/go-table.h"
#include "elf/symbol.h"

/* A function that was asked for and is not in the file. */
typedef struct MissingSymbol {
        const char *path; /* of the file */
        const char *name; /* need not end after length bytes */
        size_t length;
        const SymbolMatch *match; /* what the name stands for, if not for a function */
        const SymbolTable *local; /* .symtab, of the file or of its separate debug file */
        const SymbolTable *dynamic;
        const GoTable *go;
        const char *other_build;  /* its debug file, if there is one that is of another build */
        const char *other_common; /* the same, of what that has in common with others */
} MissingSymbol;

/* Says so, with the reason or with near names. Returns -ESRCH, or -ENOMEM. */
int missing_symbol_error(const MissingSymbol *missing, char **ret_error);

#endif
