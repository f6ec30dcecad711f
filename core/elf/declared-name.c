/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Every mangled name of the file is decoded and compared: nobody can mangle a name as its compiler
 * did, who may have had other types in mind than the words say. Only names that have the last word
 * of the wanted one in them are looked at.
 *
 * What is hardly ever run of a function ("f.cold") is none of its own: compilers split it off where
 * a function throws.
 *
 * A star is a star first: of a pointer, or an operator. Where nothing has such a name, it is any
 * text.
 */

#include "elf/declared-name.h"

#include <ctype.h>

#include "base/mangled-name.h"
#include "base/sentence.h"

#define DECLARATION_MAX 1024
#define CANDIDATES_MAX  4
#define ASKED_MAX       180 /* what is longer, nobody can write: BINDING_VALUE_MAX */

typedef struct Search {
        const char *name;
        size_t length;
        char word[128];    /* "": none that could be looked for */
        bool is_of_clones; /* it is not for the names in the file, but for what they are made of */
        char *pattern;     /* without blanks; its stars are any text; NULL: they are not */
        SymbolMatch match;
        char *candidates[CANDIDATES_MAX]; /* what tells them apart */
        size_t n_candidates;
} Search;

static bool is_word(char c) {
        return isalnum((unsigned char) c) || c == '_';
}

/* Back over "<int>" and "::<int>", if the text before end ends with that. */
static const char *skip_types(const char *begin, const char *end) {
        const char *p = end;
        int depth = 0;

        if (end == begin || end[-1] != '>')
                return end;
        do {
                p--;
                depth += (*p == '>') - (*p == '<');
        } while (p > begin && depth > 0);
        return p > begin + 2 && p[-1] == ':' && p[-2] == ':' ? p - 2 : p;
}

/*
 * Constructors and destructors have the name of their class, which need not be in the mangled one.
 */
static bool is_of_class(const char *name, const char *begin, const char *end) {
        size_t n = (size_t) (end - begin);

        if (begin > name && begin[-1] == '~')
                return true;
        return n + 2 <= (size_t) (begin - name) && memcmp(begin - 2, "::", 2) == 0 &&
               memcmp(begin - 2 - n, begin, n) == 0 && n > 0;
}

/* The word before the arguments: it is in the mangled name as it is, but for what has no name. */
static void find_word(Search *search) {
        const char *end = memchr(search->name, '(', search->length), *begin;

        if (memmem(search->name, search->length, "operator", strlen("operator")) ||
            memchr(search->name, '{', search->length))
                return;
        end = skip_types(search->name, end ?: search->name + search->length);
        begin = end;
        while (begin > search->name && is_word(begin[-1]))
                begin--;
        if (is_of_class(search->name, begin, end))
                return;
        if (end - begin < (ptrdiff_t) sizeof(search->word))
                memcpy(search->word, begin, (size_t) (end - begin));
}

/* Blanks matter between words only. */
static const char *skip_blanks(const char *p, const char *end, char before) {
        const char *next = p;

        while (next < end && *next == ' ')
                next++;
        return next < end && is_word(before) && is_word(*next) ? p : next;
}

static bool is_same(const char *a, const char *a_end, const char *b) {
        const char *b_end = b + strlen(b);
        char before = '\0';

        for (;;) {
                a = skip_blanks(a, a_end, before);
                b = skip_blanks(b, b_end, before);
                if (a == a_end || b == b_end)
                        return a == a_end && b == b_end;
                if (*a != *b)
                        return false;
                before = *a++;
                b++;
        }
}

/* Without blanks that do not matter. */
static void pack(const char *p, const char *end, char *ret) {
        char before = '\0';

        while ((p = skip_blanks(p, end, before)) < end)
                *ret++ = before = *p++;
        *ret = '\0';
}

/* fnmatch() takes time without end for some patterns with many stars. */
static bool matches_stars(const char *pattern, const char *text) {
        const char *star = NULL, *from = NULL;

        while (*text != '\0')
                if (*pattern == '*') {
                        star = pattern++;
                        from = text;
                } else if (*pattern == *text) {
                        pattern++;
                        text++;
                } else if (star) {
                        pattern = star + 1;
                        text = ++from;
                } else
                        return false;
        return pattern[strspn(pattern, "*")] == '\0';
}

static bool matches(const Search *search, const char *declaration) {
        char packed[DECLARATION_MAX];

        if (!search->pattern)
                return is_same(search->name, search->name + search->length, declaration);
        pack(declaration, declaration + strlen(declaration), packed);
        return matches_stars(search->pattern, packed);
}

static bool has_name(const Search *search, const char *mangled, char *declaration) {
        if (!strstr(mangled, search->word))
                return false;
        if (search->pattern && matches_stars(search->pattern, mangled))
                return true;
        return mangled_name_decode(mangled, false, declaration, DECLARATION_MAX) &&
               (matches(search, declaration) ||
                (mangled_name_decode(mangled, true, declaration, DECLARATION_MAX) &&
                 matches(search, declaration)));
}

/* Two constructors are declared once. */
static bool tells_apart(const Search *search, const char *declaration) {
        if (is_same(search->name, search->name + search->length, declaration))
                return false;
        for (size_t i = 0; i < search->n_candidates; i++)
                if (streq(search->candidates[i], declaration))
                        return false;
        return strlen(declaration) <= ASKED_MAX;
}

static int add_candidate(Search *search, const char *mangled) {
        char declaration[DECLARATION_MAX];

        if (search->n_candidates == CANDIDATES_MAX)
                return 0;
        if (!mangled_name_decode(mangled, true, declaration, sizeof(declaration)) ||
            !tells_apart(search, declaration))
                (void) snprintf(declaration, sizeof(declaration), "%.*s",
                                (int) strcspn(mangled, "@"), mangled);
        if (strlen(declaration) > ASKED_MAX)
                return 0;
        search->candidates[search->n_candidates] = strdup(declaration);
        return search->candidates[search->n_candidates++] ? 0 : -ENOMEM;
}

/*
 * Is it a part of a function that is named, too? Unless it is asked for. All mangled names begin
 * with that letter; "main.cold" is a function of Go.
 */
static bool is_cold_part(const Search *search, const char *mangled) {
        return mangled[0] == '_' && name_is_cold(mangled) &&
               !memmem(search->name, search->length, ".cold", strlen(".cold"));
}

/* How long the name is of which "f.isra.0" is made; 0: none that is known. */
static size_t original_length(const char *name, size_t n) {
        static const char *const made[] = { "isra.", "constprop.", "lto_priv." };

        for (const char *dot = memchr(name, '.', n); dot; dot = strchr(dot + 1, '.'))
                for (size_t i = 0; i < ELEMENTSOF(made); i++)
                        if (strncmp(dot + 1, made[i], strlen(made[i])) == 0 &&
                            isdigit((unsigned char) dot[1 + strlen(made[i])]))
                                return (size_t) (dot - name);
        return 0;
}

bool declared_name_is_clone(const char *name) {
        return original_length(name, strnlen(name, DECLARATION_MAX)) > 0;
}

/* Is it made of a function of that name, in C also? */
static bool is_clone(const Search *search, const char *name) {
        char original[DECLARATION_MAX], declaration[DECLARATION_MAX];
        size_t n = strnlen(name, DECLARATION_MAX);

        if (n == DECLARATION_MAX || !strstr(name, search->word) || name_is_cold(name))
                return false;
        n = original_length(name, n);
        memcpy(original, name, n);
        original[n] = '\0';
        return n > 0 && ((n == search->length && memcmp(original, search->name, n) == 0) ||
                         has_name(search, original, declaration));
}

static bool is_wanted(const Search *search, const SymbolFunction *function) {
        char declaration[DECLARATION_MAX];

        if (search->is_of_clones)
                return !function->is_old && is_clone(search, function->name);
        return !function->is_old && has_name(search, function->name, declaration) &&
               !is_cold_part(search, function->name);
}

static int look_at(const SymbolFunction *function, void *userdata) {
        Search *search = userdata;
        SymbolMatch *match = &search->match;

        if (!is_wanted(search, function))
                return 0;
        if (match->n_places == 0)
                match->size = function->size;
        if (!symbol_match_add_place(match, function->address))
                return 0;
        return add_candidate(search, function->name);
}

static int several(const Search *search, const char *path, char **ret_error) {
        _cleanup_free_ char *list = NULL;

        for (size_t i = 0; i < search->n_candidates; i++) {
                char *longer = NULL;

                if (asprintf(&longer, "%s%s'%s'", list ?: "", list ? ", " : "",
                             search->candidates[i]) < 0)
                        return -ENOMEM;
                free(list);
                list = longer;
        }
        return sentence_error(-ENOTUNIQ, ret_error,
                              "Several functions in %s are named '%.*s': give one of them%s%s; "
                              "'tlobctl functions' lists all, with their offsets",
                              path, (int) search->length, search->name, list ? ", such as " : "",
                              list ?: "");
}

static int count(const SymbolFunction *function, void *userdata) {
        Search *search = userdata;

        if (is_wanted(search, function))
                (void) symbol_match_add_place(&search->match, function->address);
        return search->match.n_places > 1;
}

int declared_name_count(const SymbolTable *table, const char *name) {
        Search search = { .name = name, .length = strlen(name) };

        find_word(&search);
        if (search.length > ASKED_MAX || search.word[0] == '\0')
                return 2;
        (void) symbol_table_visit(table, count, &search);
        return (int) search.match.n_places;
}

static int find(const SymbolTable *table, const char *path, Search *search, SymbolMatch *ret,
                char **ret_error) {
        int r;

        find_word(search);
        r = symbol_table_visit(table, look_at, search);
        if (r >= 0 && search->match.n_places > 1)
                r = several(search, path, ret_error);
        else if (r >= 0)
                r = search->match.n_places > 0;
        if (r > 0)
                *ret = search->match;
        for (size_t i = 0; i < search->n_candidates; i++)
                free(search->candidates[i]);
        return r;
}

int declared_name_find(const SymbolTable *table, const char *path, const char *name, size_t length,
                       SymbolMatch *ret, char **ret_error) {
        Search search = { .name = name, .length = length };
        _cleanup_free_ char *pattern = NULL;
        int r;

        r = find(table, path, &search, ret, ret_error);
        if (r != 0 || !memchr(name, '*', length))
                return r;
        pattern = malloc(length + 1);
        if (!pattern)
                return -ENOMEM;
        pack(name, name + length, pattern);
        search = (Search) { .name = name, .length = length, .pattern = pattern };
        return find(table, path, &search, ret, ret_error);
}

int declared_name_find_clone(const SymbolTable *table, const char *path, const char *name,
                             size_t length, SymbolMatch *ret, char **ret_error) {
        Search search = { .name = name, .length = length, .is_of_clones = true };

        return find(table, path, &search, ret, ret_error);
}

bool declared_name_is_of(const char *name, size_t length, const char *mangled) {
        Search search = { .name = name, .length = length };
        char declaration[DECLARATION_MAX];

        if (strnlen(mangled, DECLARATION_MAX) == DECLARATION_MAX)
                return false;
        find_word(&search);
        return has_name(&search, mangled, declaration);
}
