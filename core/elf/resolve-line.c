/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From "file.c:123" to one place. A line is often in several pieces within its function, of which
 * the one at the lowest address is taken. In several functions, because it was inlined, because of
 * a template, or because files have the same name, it is refused: a window needs one beginning.
 *
 * What the compiler has split off a function ("f.cold") counts as a part of it.
 */

#include <inttypes.h>

#include "base/mangled-name.h"
#include "base/sentence.h"
#include "elf/internal.h"
#include "elf/line-table.h"

#define LINE_MAX    9999999
#define LISTED_MAX  4 /* in a sentence */
#define LISTED_SIZE 320

/* The pieces of a line, by the functions that they are in: of each, the first. */
typedef struct LineFunction {
        uint64_t address;
        uint64_t start; /* of the function; of one that is not known, the same as address */
        char *name;     /* NULL: not known; owned */
} LineFunction;

typedef struct LineFunctions {
        LineFunction items[LISTED_MAX]; /* more are counted only */
        size_t n;
} LineFunctions;

static void line_functions_done(LineFunctions *functions) {
        for (size_t i = 0; i < functions->n && i < LISTED_MAX; i++)
                free(functions->items[i].name);
}

bool line_site_parse(const char *site, size_t *ret_length, unsigned *ret_line) {
        const char *colon = strrchr(site, ':');
        unsigned long line = 0;

        if (!colon || colon == site || colon[-1] == ':' || colon[1] == '\0' || colon[1] == '0' ||
            colon[1 + strspn(colon + 1, "0123456789")] != '\0')
                return false;
        line = strtoul(colon + 1, NULL, 10);
        if (line > LINE_MAX)
                return false;
        *ret_length = (size_t) (colon - site);
        *ret_line = (unsigned) line;
        return true;
}

static bool is_code(uint64_t address, void *userdata) {
        const ElfFile *elf = userdata;
        GElf_Phdr phdr;

        return elf_file_find_code(elf, address, false, &phdr);
}

static bool is_known(const LineFunctions *functions, uint64_t start) {
        for (size_t i = 0; i < functions->n && i < LISTED_MAX; i++)
                if (functions->items[i].start == start)
                        return true;
        return false;
}

/* Sorts the places by their functions; with_cold: what was split off, too. */
static int sort_places(const ElfFile *elf, const LinePlaces *places, bool with_cold,
                       LineFunctions *functions) {
        uint64_t last = UINT64_MAX;

        for (size_t i = 0; i < places->n; i++) {
                LineFunction function = { .address = places->items[i].address };
                uint64_t size;
                int r;

                function.start = function.address;
                (void) elf_file_extent_at(elf, function.address, &function.start, &size);
                if (function.start == last || is_known(functions, function.start))
                        continue;
                last = function.start;
                r = elf_file_name_function(elf, function.address, &function.name);
                if (r < 0)
                        return r;
                if ((function.name && name_is_cold(function.name)) != with_cold) {
                        free(function.name);
                        continue;
                }
                if (functions->n < LISTED_MAX)
                        functions->items[functions->n] = function;
                else
                        free(function.name);
                functions->n++;
        }
        return 0;
}

/* "f+0x1c, g+0x20": each can be written instead. NULL for want of memory. */
static char *list_functions(const ElfFile *elf, const LineFunctions *functions) {
        char *list = strdup("");

        for (size_t i = 0; i < functions->n && i < LISTED_MAX && list; i++) {
                const LineFunction *function = &functions->items[i];
                _cleanup_free_ char *before = list;
                uint64_t value = function->address - function->start;
                GElf_Phdr phdr;

                if (!function->name && elf_file_find_code(elf, function->address, false, &phdr))
                        value = segment_offset(&phdr, function->address);
                list = sentence_make("%s%s%s%s0x%" PRIx64, before, i > 0 ? ", " : "",
                                     function->name ?: "", function->name ? "+" : "", value);
        }
        return list;
}

static int several_functions(const ElfFile *elf, const char *site, const LinePlaces *places,
                             const LineFunctions *functions, char **ret_error) {
        _cleanup_free_ char *list = NULL;

        if (places->other_file)
                return sentence_error(-ENOTUNIQ, ret_error,
                                      "'%s' stands for several files in %s, such as %s and %s: "
                                      "write more of the path",
                                      site, elf->path, places->file, places->other_file);
        list = list_functions(elf, functions);
        if (!list)
                return -ENOMEM;
        return sentence_error(-ENOTUNIQ, ret_error,
                              "The code of '%s' is in %zu functions of %s, because it was inlined "
                              "or is a template: give one of the places (%s%s)",
                              site, functions->n, elf->path, list,
                              functions->n > LISTED_MAX ? ", ..." : "");
}

static int no_code(const ElfFile *elf, const char *site, size_t length, const LinePlaces *places,
                   char **ret_error) {
        char near[64] = "";

        if (!places->has_file)
                return sentence_error(-ESRCH, ret_error,
                                      "No source file '%.*s' has code in %s, according to its line "
                                      "numbers%s%s",
                                      (int) length, site, elf->path,
                                      *places->near_files ? "; near names: " : "",
                                      places->near_files);
        if (places->before > 0 && places->after > 0)
                (void) snprintf(near, sizeof(near), "s with code are %u and %u", places->before,
                                places->after);
        else
                (void) snprintf(near, sizeof(near), " with code is %u",
                                places->before > 0 ? places->before : places->after);
        return sentence_error(-ESRCH, ret_error, "'%s' has no code in %s; the nearest line%s", site,
                              elf->path, near);
}

static int no_lines(int error, const ElfFile *elf, const char *site, char **ret_error) {
        const char *other = elf->debug.other_build;

        switch (error) {
        case -ENODATA:
                return sentence_error(-ESRCH, ret_error,
                                      "'%s' cannot be found in %s, which has no line numbers "
                                      "(DWARF): install its debug symbols%s%s%s, or name a "
                                      "function",
                                      site, elf->path, other ? " (those in " : "", other ?: "",
                                      other ? " are of another build)" : "");
        case -E2BIG:
                return sentence_error(
                        -ENOTUNIQ, ret_error,
                        "The code of '%s' is in more than %u places of %s, because it "
                        "was inlined: name a function",
                        site, LINE_PLACES_MAX, elf->path);
        case -EFBIG:
                return sentence_error(
                        -ERANGE, ret_error,
                        "'%s' cannot be found in %s, whose line numbers are too large "
                        "for tlobd: name a function",
                        site, elf->path);
        case -EBADMSG:
                return sentence_error(-ESRCH, ret_error,
                                      "'%s' cannot be found in %s, whose line numbers (DWARF) are "
                                      "damaged",
                                      site, elf->path);
        default:
                return error;
        }
}

/* In the file itself, else in its debug file. */
static int find_places(ElfFile *elf, const char *site, size_t length, unsigned line,
                       LinePlaces *ret) {
        _cleanup_free_ char *file = strndup(site, length);
        const ElfFile *debug;
        int r;

        if (!file)
                return -ENOMEM;
        r = line_table_find(elf->elf, file, line, is_code, elf, ret);
        if (r != -ENODATA)
                return r;
        debug = elf_file_open_debug(elf);
        return debug ? line_table_find(debug->elf, file, line, is_code, elf, ret) : -ENODATA;
}

static int take_place(const ElfFile *elf, LineFunction *function, ElfSite *ret) {
        ElfSite site = { .distance = function->address - function->start };
        GElf_Phdr phdr;

        if (!elf_file_find_code(elf, function->address, false, &phdr))
                return -ERANGE;
        site.offset = segment_offset(&phdr, function->address);
        if (site.distance == 0)
                site.offset = elf_file_place_entry(elf, site.offset);
        site.function = TAKE_PTR(function->name);
        *ret = site;
        return 0;
}

int elf_file_resolve_line(ElfFile *elf, const char *site, ElfSite *ret, char **ret_error) {
        _cleanup_(line_functions_done) LineFunctions functions = {};
        _cleanup_(line_places_done) LinePlaces places = {};
        SymbolTable tables[2];
        size_t length = 0;
        unsigned line = 0;
        int r;

        (void) line_site_parse(site, &length, &line);
        r = find_places(elf, site, length, line, &places);
        if (r < 0)
                return no_lines(r, elf, site, ret_error);
        if (places.n == 0)
                return no_code(elf, site, length, &places, ret_error);
        elf_file_load_symbols(elf, tables);
        r = sort_places(elf, &places, false, &functions);
        if (r >= 0 && functions.n == 0)
                r = sort_places(elf, &places, true, &functions);
        if (r < 0)
                return r;
        if (functions.n > 1)
                return several_functions(elf, site, &places, &functions, ret_error);
        return take_place(elf, &functions.items[0], ret);
}
