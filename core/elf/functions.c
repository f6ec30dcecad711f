/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "elf/functions.h"

#include "base/sentence.h"
#include "elf/internal.h"
#include "elf/mark.h"
#include "elf/symbol.h"
#include "elf/usdt.h"

typedef struct Listing {
        const ElfFile *elf;
        ElfFunctions *functions;
        bool is_fetched;
} Listing;

static void function_done(ElfFunction *function) {
        free(function->name);
        free(function->arguments);
}

void elf_functions_done(ElfFunctions *functions) {
        for (size_t i = 0; i < functions->n; i++)
                function_done(&functions->items[i]);
        free(functions->items);
        *functions = (ElfFunctions) {};
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
        functions->items[functions->n++] = (ElfFunction) {
                .name = TAKE_PTR(name),
                .offset =
                        elf_file_place_entry(listing->elf, segment_offset(&phdr, symbol->address)),
                .size = symbol->size,
                .is_fetched = listing->is_fetched,
        };
        return 0;
}

static int add_usdt(const UsdtNote *note, void *userdata) {
        const Listing *listing = userdata;
        ElfFunctions *functions = listing->functions;
        _cleanup_free_ char *name = NULL, *arguments = NULL;
        int r;

        name = sentence_make(USDT_PLACE "%s:%s", note->provider, note->name);
        if (*note->arguments != '\0' && !(arguments = strdup(note->arguments)))
                return -ENOMEM;
        r = name ? make_room(functions) : -ENOMEM;
        if (r < 0)
                return r;
        functions->items[functions->n++] = (ElfFunction) {
                .name = TAKE_PTR(name),
                .arguments = TAKE_PTR(arguments),
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
                        function_done(item);
                        continue;
                }
                if (last && streq(last->name, item->name))
                        last->ambiguous = item->ambiguous = true;
                functions->items[n++] = *item;
        }
        functions->n = n;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(((const ElfFunction *) a)->name, ((const ElfFunction *) b)->name);
}

static size_t parse_side(const ElfFunction *function, const char **ret_name, MarkSide *ret) {
        return function->is_usdt ? mark_parse_place(function->name, ret_name, ret) : 0;
}

/* Flags a begin and its end, if both are there. */
static int find_mark(ElfFunctions *functions, ElfFunction *begin) {
        _cleanup_free_ char *mark = NULL, *end_name = NULL;
        const char *name;
        ElfFunction *end;
        MarkSide side;
        size_t n;

        n = parse_side(begin, &name, &side);
        if (n == 0 || side != MARK_BEGIN)
                return 0;
        mark = strndup(name, n);
        end_name = mark ? mark_make_place(mark, MARK_END) : NULL;
        if (!end_name)
                return -ENOMEM;
        end = bsearch(&(ElfFunction) { .name = end_name }, functions->items, functions->n,
                      sizeof(*functions->items), compare_names);
        if (end)
                begin->is_mark = end->is_mark = true;
        return 0;
}

/* A begin that is flagged gets the name of its mark; of its end nothing is left. */
static int join_sides(ElfFunctions *functions) {
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; i < functions->n; i++) {
                ElfFunction *item = &functions->items[i];
                MarkSide side = MARK_BEGIN;
                const char *mark;
                size_t length = item->is_mark ? parse_side(item, &mark, &side) : 0;
                char *name = NULL;

                if (length > 0) {
                        if (side == MARK_BEGIN)
                                name = sentence_make(MARK_KEY "%.*s", (int) length, mark);
                        if (side == MARK_BEGIN && !name)
                                r = -ENOMEM;
                        free(item->name);
                        item->name = name;
                }
                if (item->name)
                        functions->items[n++] = *item;
                else
                        free(item->arguments);
        }
        functions->n = n;
        return r;
}

/* Of sorted ones, which then are sorted again. */
static int join_marks(ElfFunctions *functions) {
        int r = 0;

        for (size_t i = 0; i < functions->n && r >= 0; i++)
                r = find_mark(functions, &functions->items[i]);
        if (r >= 0)
                r = join_sides(functions);
        if (r >= 0 && functions->n > 0)
                qsort(functions->items, functions->n, sizeof(*functions->items), compare);
        return r;
}

int elf_file_list_functions(ElfFile *elf, ElfFunctions *ret) {
        ElfFunctions functions = {};
        Listing listing = { .elf = elf, .functions = &functions };
        SymbolTable tables[2];
        int r;

        elf_file_load_symbols(elf, tables);
        functions.is_stripped = tables[0].n == 0 && elf->go.n == 0;
        listing.is_fetched = elf->debug.is_fetched;
        r = symbol_table_visit(&tables[0], add, &listing);
        listing.is_fetched = false;
        if (r >= 0 && tables[0].n == 0)
                r = go_table_visit(&elf->go, add, &listing);
        if (r >= 0 && (tables[0].n == 0 || tables[0].is_partial || elf->debug.is_fetched))
                r = symbol_table_visit(&tables[1], add, &listing);
        if (r >= 0)
                r = elf_file_visit_usdt(elf, add_usdt, &listing);
        if (r >= 0 && functions.n > 0)
                qsort(functions.items, functions.n, sizeof(*functions.items), compare_knowledge);
        if (r >= 0) {
                remove_doubles(&functions);
                r = join_marks(&functions);
        }
        if (r < 0) {
                elf_functions_done(&functions);
                return r;
        }
        *ret = functions;
        return 0;
}
