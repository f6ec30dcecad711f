/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "elf/functions.h"

#include "base/sentence.h"
#include "elf/internal.h"
#include "elf/symbol.h"
#include "elf/usdt.h"

typedef struct Listing {
        const ElfFile *elf;
        ElfFunctions *functions;
        bool is_fetched;
} Listing;

void elf_functions_done(ElfFunctions *functions) {
        for (size_t i = 0; i < functions->n; i++)
                free(functions->items[i].name);
        free(functions->items);
        *functions = (ElfFunctions){};
}

static int make_room(ElfFunctions *functions) {
        size_t n = functions->n_allocated > 0 ? 2 * functions->n_allocated : 256;
        ElfFunction *items;

        if (functions->n < functions->n_allocated)
                return 0;
        items = reallocarray(functions->items, n, sizeof(*items));
        if (!items)
                return -ENOMEM;
        functions->items = items;
        functions->n_allocated = n;
        return 0;
}

/* As it is to be written: with its version, if it takes one. NULL for want of memory. */
static char *make_name(const SymbolFunction *symbol) {
        char *name = NULL;

        if (!symbol->is_old)
                return strndup(symbol->name, strcspn(symbol->name, "@"));
        if (!symbol->version)
                return strdup(symbol->name);
        return asprintf(&name, "%s@%s", symbol->name, symbol->version) < 0 ? NULL : name;
}

static bool can_be_shown(const SymbolFunction *symbol) {
        return strnlen(symbol->name, FUNCTION_NAME_MAX) < FUNCTION_NAME_MAX &&
               text_is_printable(symbol->name) &&
               (!symbol->version ||
                (strnlen(symbol->version, FUNCTION_NAME_MAX) < FUNCTION_NAME_MAX &&
                 text_is_printable(symbol->version)));
}

static int add(const SymbolFunction *symbol, void *userdata) {
        const Listing *listing = userdata;
        ElfFunctions *functions = listing->functions;
        _cleanup_free_ char *name = NULL;
        GElf_Phdr phdr;
        int r;

        if (!can_be_shown(symbol) ||
            !elf_file_find_code(listing->elf, symbol->address, false, &phdr))
                return 0;
        name = make_name(symbol);
        r = name ? make_room(functions) : -ENOMEM;
        if (r < 0)
                return r;
        functions->items[functions->n++] = (ElfFunction){
                .name = TAKE_PTR(name),
                .offset =
                        elf_file_skip_endbr64(listing->elf, segment_offset(&phdr, symbol->address)),
                .size = symbol->size,
                .is_fetched = listing->is_fetched,
        };
        return 0;
}

static int add_usdt(const UsdtNote *note, void *userdata) {
        const Listing *listing = userdata;
        ElfFunctions *functions = listing->functions;
        _cleanup_free_ char *name = NULL;
        int r;

        name = sentence_make(USDT_PLACE "%s:%s", note->provider, note->name);
        r = name ? make_room(functions) : -ENOMEM;
        if (r < 0)
                return r;
        functions->items[functions->n++] = (ElfFunction){
                .name = TAKE_PTR(name),
                .offset = note->offset,
                .is_usdt = true,
        };
        return 0;
}

static int compare(const void *a, const void *b) {
        const ElfFunction *left = a, *right = b;
        int order = strcmp(left->name, right->name);

        return order ?: (left->offset > right->offset) - (left->offset < right->offset);
}

/* Of those that are the same, one that others know, too, comes first. */
static int compare_knowledge(const void *a, const void *b) {
        const ElfFunction *left = a, *right = b;

        return compare(a, b) ?: left->is_fetched - right->is_fetched;
}

/* A symbol can be there twice; a USDT probe is one, wherever it is. */
static bool is_double(const ElfFunction *a, const ElfFunction *b) {
        return compare(a, b) == 0 || (a->is_usdt && b->is_usdt && streq(a->name, b->name));
}

/* Of sorted ones. */
static void remove_doubles(ElfFunctions *functions) {
        size_t n = 0;

        for (size_t i = 0; i < functions->n; i++) {
                ElfFunction *last = n > 0 ? &functions->items[n - 1] : NULL;
                ElfFunction *item = &functions->items[i];

                if (last && is_double(last, item)) {
                        free(item->name);
                        continue;
                }
                if (last && streq(last->name, item->name))
                        last->ambiguous = item->ambiguous = true;
                functions->items[n++] = *item;
        }
        functions->n = n;
}

int elf_file_list_functions(ElfFile *elf, ElfFunctions *ret) {
        ElfFunctions functions = {};
        Listing listing = { .elf = elf, .functions = &functions };
        SymbolTable tables[2];
        int r;

        elf_file_load_symbols(elf, tables);
        functions.is_stripped = tables[0].n == 0;
        listing.is_fetched = elf->debug.is_fetched;
        r = symbol_table_visit(&tables[0], add, &listing);
        listing.is_fetched = false;
        if (r >= 0 && (functions.is_stripped || tables[0].is_partial || elf->debug.is_fetched))
                r = symbol_table_visit(&tables[1], add, &listing);
        if (r >= 0)
                r = elf_file_visit_usdt(elf, add_usdt, &listing);
        if (r < 0) {
                elf_functions_done(&functions);
                return r;
        }
        if (functions.n > 0)
                qsort(functions.items, functions.n, sizeof(*functions.items), compare_knowledge);
        remove_doubles(&functions);
        *ret = functions;
        return 0;
}
