/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From what is written in a configuration to a place in a file: a symbol, a place in a function, or
 * an offset. Lines (resolve-line.c) and USDT probes (usdt.c) have files of their own.
 *
 * A probe on endbr64, with which most functions begin today, is single-stepped by the kernel, the
 * instruction after it mostly is not: so a function asked for by its name alone gets its probe
 * there.
 *
 * Refused: IFUNCs (the code behind the name is chosen when the program starts), offsets outside
 * executable segments. That an offset is the beginning of an instruction is checked in
 * binding/sites.c.
 */

#include <ctype.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/mangled-name.h"
#include "base/sentence.h"
#include "elf/declared-name.h"
#include "elf/file.h"
#include "elf/inlined.h"
#include "elf/internal.h"
#include "elf/missing-symbol.h"
#include "elf/recent.h"
#include "elf/usdt.h"

#define INLINED_NS UINT64_C(500000000) /* to look whether a function was inlined */

static int resolve_offset(ElfFile *elf, const char *site, ElfSite *ret, char **ret_error) {
        ElfSite result = {};
        SymbolTable tables[2];
        uint64_t address, size;
        GElf_Phdr phdr;
        char *end;
        int r;

        errno = 0;
        result.offset = strtoull(site, &end, 16);
        if (site[0] != '0' || tolower((unsigned char) site[1]) != 'x' ||
            !isxdigit((unsigned char) site[2]) || *end != '\0' || errno != 0)
                return sentence_error(-EINVAL, ret_error,
                                      "'%s' is not an offset: write it as 0x12a0, or give a symbol",
                                      site);

        if (result.offset >= elf_file_size(elf))
                return sentence_error(-ERANGE, ret_error,
                                      "Offset %s is outside %s, which has 0x%" PRIx64 " bytes",
                                      site, elf->path, elf_file_size(elf));
        if (!elf_file_find_code(elf, result.offset, true, &phdr))
                return sentence_error(-ERANGE, ret_error,
                                      "Offset %s is outside the executable segments of %s", site,
                                      elf->path);

        elf_file_load_symbols(elf, tables);
        address = segment_address(&phdr, result.offset);
        r = elf_file_name_function(elf, address, &result.function);
        if (r < 0)
                return r;
        if (elf_file_extent_at(elf, address, &result.distance, &size))
                result.distance = address - result.distance;
        *ret = result;
        return 0;
}

/* A site that is a symbol, taken apart. */
typedef struct SymbolSite {
        SymbolName name;
        const char *text;   /* as written */
        size_t text_length; /* of it, what names the function, with its version */
        bool has_addend;
        uint64_t addend;
} SymbolSite;

/* Where the text ends that names the function, before "+0x1c". */
static int parse_addend(SymbolSite *site, char **ret_error) {
        const char *plus = strrchr(site->text, '+');
        char *end;

        site->text_length = strlen(site->text);
        if (!plus || (name_is_of_source(site->text) && !isdigit((unsigned char) plus[1])))
                return 0;
        errno = 0;
        site->has_addend = true;
        site->addend = strtoull(plus + 1, &end, 0);
        if (!isdigit((unsigned char) plus[1]) || *end != '\0' || errno != 0)
                return sentence_error(-EINVAL, ret_error,
                                      "'%s' is not a place in a function: write it as symbol+0x1c",
                                      site->text);
        site->text_length = (size_t) (plus - site->text);
        return 0;
}

/* Takes "@VERSION" and "@@VERSION" off the name. */
static bool parse_version(SymbolName *name) {
        const char *at = memchr(name->name, '@', name->length), *end = name->name + name->length;

        if (!at)
                return true;
        name->length = (size_t) (at - name->name);
        name->wants_default = at[1] == '@';
        name->version = at + 1 + name->wants_default;
        name->version_length = (size_t) (end - name->version);
        return name->version < end && !memchr(name->version, '@', name->version_length);
}

static int parse_symbol_site(const char *text, SymbolSite *ret, char **ret_error) {
        SymbolSite site = { .text = text, .name.name = text };
        int r;

        r = parse_addend(&site, ret_error);
        if (r < 0)
                return r;
        site.name.length = site.text_length;
        if (!parse_version(&site.name) || site.name.length == 0 ||
            strpbrk(text, name_is_of_source(text) ? "\t" : " \t"))
                return sentence_error(-EINVAL, ret_error,
                                      "'%s' is neither a symbol nor an offset such as 0x12a0",
                                      text);
        *ret = site;
        return 0;
}

static int ambiguous_symbol(ElfFile *elf, const SymbolSite *site, const SymbolMatch *match,
                            char **ret_error) {
        char places[SYMBOL_PLACES_MAX * sizeof("0x0123456789abcdef, ")] = "";

        for (size_t i = 0; i < match->n_places; i++) {
                char *p = places + strlen(places);
                GElf_Phdr phdr;

                if (elf_file_find_code(elf, match->places[i], false, &phdr))
                        (void) sprintf(p, "%s0x%" PRIx64, p == places ? "" : ", ",
                                       segment_offset(&phdr, match->places[i]));
        }
        return sentence_error(-ENOTUNIQ, ret_error,
                              "Several functions in %s are named '%.*s': give the offset of one "
                              "of them (%s)",
                              elf->path, (int) site->name.length, site->name.name, places);
}

/* Of these the C library chooses the kernel's code, the vDSO, which is in no file. */
static bool is_of_kernel(const ElfFile *elf, const SymbolName *name) {
        static const char *const names[] = { "gettimeofday", "time", "clock_gettime", "getcpu" };
        const char *file = strrchr(elf->path, '/');

        if (!file || strncmp(file, "/libc.so", strlen("/libc.so")) != 0)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (strlen(names[i]) == name->length &&
                    memcmp(names[i], name->name, name->length) == 0)
                        return true;
        return false;
}

/* What can be named instead: the implementations have names of their own in .symtab. */
static int indirect_symbol(const ElfFile *elf, const SymbolTable tables[static 2],
                           const SymbolSite *site, char **ret_error) {
        int length = (int) site->name.length;
        _cleanup_free_ char *prefix = NULL;
        size_t n;

        if (is_of_kernel(elf, &site->name))
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "'%.*s' in %s is an indirect function (IFUNC), for which "
                                      "programs get code of the kernel (the vDSO), where no probe "
                                      "can be: name a function that calls it",
                                      length, site->name.name, elf->path);
        prefix = sentence_make("__%.*s_", length, site->name.name);
        if (!prefix)
                return -ENOMEM;
        n = symbol_table_count(&tables[0], prefix);
        if (n > 0)
                return sentence_error(
                        -EOPNOTSUPP, ret_error,
                        "'%.*s' in %s is an indirect function (IFUNC), whose code is chosen when "
                        "the program starts: name the function that is chosen; 'tlobctl functions "
                        "%s '%s*'' lists %zu",
                        length, site->name.name, elf->path, elf->path, prefix, n);
        return sentence_error(
                -EOPNOTSUPP, ret_error,
                "'%.*s' in %s is an indirect function (IFUNC), whose code is chosen when the "
                "program starts: %s the function that is chosen, or give its offset",
                length, site->name.name, elf->path,
                tables[0].n == 0 ? "install the debug symbols, and name" : "name");
}

/* The function is there, but not with that version. */
static int other_version(const ElfFile *elf, const SymbolTable tables[static 2],
                         const SymbolSite *site, char **ret_error) {
        _cleanup_free_ char *versions = NULL;

        for (int i = 1; i >= 0 && (!versions || *versions == '\0'); i--) {
                free(versions);
                versions = symbol_table_list_versions(&tables[i], &site->name);
        }
        if (!versions)
                return -ENOMEM;
        return sentence_error(-ESRCH, ret_error, "'%.*s' in %s has no%s version '%.*s'%s%s",
                              (int) site->name.length, site->name.name, elf->path,
                              site->name.wants_default ? " default" : "",
                              (int) site->name.version_length, site->name.version,
                              *versions != '\0' ? ", but: " : ", and none at all", versions);
}

static bool is_unknown(const SymbolMatch *match) {
        return match->n_places == 0 && !match->imported && !match->data && !match->other_version;
}

/*
 * Looks the name up among all, else among those that are exported; where .symtab has only what is
 * not exported, among both; in the table of Go; at last as one of the source. Only what is exported
 * has versions for sure; what a compiler makes of a function is never exported.
 */
static int look_up(const ElfFile *elf, const SymbolTable tables[static 2], const SymbolName *name,
                   SymbolMatch *match, char **ret_error) {
        int r = 0;

        if (name->version)
                symbol_table_find(&tables[1], name, match);
        for (size_t i = 0; i < 2 && (match->n_places == 0 || tables[0].is_partial); i++)
                symbol_table_find(&tables[i], name, match);
        if (match->n_places == 0)
                go_table_find(&elf->go, name, match);
        if (match->n_places > 0 || name->version)
                return 0;
        for (size_t i = 0; i < 2 && match->n_places == 0 && r >= 0; i++)
                r = declared_name_find(&tables[i], elf->path, name->name, name->length, match,
                                       ret_error);
        if (r == 0 && is_unknown(match))
                r = declared_name_find_clone(&tables[0], elf->path, name->name, name->length, match,
                                             ret_error);
        match->is_declared = match->n_places > 0;
        return r;
}

/* If that is missing for it. */
static const char *other_common(const ElfFile *elf) {
        const DebugFiles *files = elf->debug.separate ? &elf->debug.separate->debug : &elf->debug;

        return files->common ? NULL : files->other_common;
}

/* That a name is missing says something of the function only where all functions are named. */
static int missing_function(ElfFile *elf, const SymbolTable tables[static 2],
                            const SymbolSite *site, const SymbolMatch *match, char **ret_error) {
        if (elf->is_patient && tables[0].n > 0 && is_unknown(match) && !site->name.version &&
            inlined_name_find(elf, site->name.name, site->name.length, now_ns() + INLINED_NS))
                return sentence_error(-ESRCH, ret_error,
                                      "'%.*s' in %s was inlined wherever it is called, so that no "
                                      "function is left to measure: name one that calls it",
                                      (int) site->name.length, site->name.name, elf->path);
        return missing_symbol_error(
                &(MissingSymbol) {
                        .path = elf->path,
                        .name = site->name.name,
                        .length = site->name.length,
                        .match = match,
                        .local = &tables[0],
                        .dynamic = &tables[1],
                        .go = &elf->go,
                        .other_build = elf->debug.other_build,
                        .other_common = other_common(elf),
                },
                ret_error);
}

/* Finds the one function of that name. */
static int find_symbol(ElfFile *elf, const SymbolSite *site, SymbolMatch *ret, char **ret_error) {
        SymbolMatch match = {};
        SymbolTable tables[2];
        int r;

        elf_file_load_symbols(elf, tables);
        r = look_up(elf, tables, &site->name, &match, ret_error);
        if (r < 0)
                return r;
        if (match.n_places == 0 && match.other_version)
                return other_version(elf, tables, site, ret_error);
        if (match.n_places == 0)
                return missing_function(elf, tables, site, &match, ret_error);
        if (match.indirect)
                return indirect_symbol(elf, tables, site, ret_error);
        if (match.n_places > 1)
                return ambiguous_symbol(elf, site, &match, ret_error);
        *ret = match;
        return 0;
}

/* From the function's address to the place in the file where the probe goes. */
static int place_in_function(const ElfFile *elf, const SymbolSite *site, const SymbolMatch *match,
                             uint64_t *ret_offset, char **ret_error) {
        uint64_t address = match->places[0] + site->addend, offset;
        GElf_Phdr phdr;

        if (match->size > 0 && site->addend >= match->size)
                return sentence_error(-ERANGE, ret_error,
                                      "'%s' is past the end of the function, which has 0x%" PRIx64
                                      " bytes in %s",
                                      site->text, match->size, elf->path);
        if (address < match->places[0] || !elf_file_find_code(elf, address, false, &phdr))
                return sentence_error(-ERANGE, ret_error,
                                      "'%s' is outside the executable segments of %s", site->text,
                                      elf->path);

        offset = segment_offset(&phdr, address);
        if (!site->has_addend) {
                uint64_t place = elf_file_place_entry(elf, offset);

                if (match->size == 0 || place - offset < match->size)
                        offset = place;
        }
        *ret_offset = offset;
        return 0;
}

/* As written, unless that is only what it was made of. */
static int name_site(const ElfFile *elf, const SymbolSite *site, const SymbolMatch *match,
                     char **ret) {
        _cleanup_free_ char *name = NULL;
        int r;

        if (match->is_declared) {
                r = elf_file_name_function(elf, match->places[0], &name);
                if (r < 0)
                        return r;
        }
        *ret = name && declared_name_is_clone(name) ? TAKE_PTR(name)
                                                    : strndup(site->text, site->text_length);
        return *ret ? 0 : -ENOMEM;
}

static int resolve_symbol(ElfFile *elf, const char *text, ElfSite *ret, char **ret_error) {
        ElfSite result = {};
        SymbolMatch match = {};
        SymbolSite site = {};
        int r;

        r = parse_symbol_site(text, &site, ret_error);
        if (r < 0)
                return r;
        r = find_symbol(elf, &site, &match, ret_error);
        if (r < 0)
                return r;
        r = place_in_function(elf, &site, &match, &result.offset, ret_error);
        if (r < 0)
                return r;

        result.distance = site.addend;
        r = name_site(elf, &site, &match, &result.function);
        if (r < 0)
                return r;
        *ret = result;
        return 0;
}

int elf_file_resolve(ElfFile *elf, const char *site, ElfSite *ret, char **ret_error) {
        elf_recent_drop();
        if (strncmp(site, USDT_PLACE, strlen(USDT_PLACE)) == 0)
                return elf_file_resolve_usdt(elf, site, ret, ret_error);
        if (line_site_parse(site, &(size_t) { 0 }, &(unsigned) { 0 }))
                return elf_file_resolve_line(elf, site, ret, ret_error);
        if (isdigit((unsigned char) site[0]))
                return resolve_offset(elf, site, ret, ret_error);
        return resolve_symbol(elf, site, ret, ret_error);
}
