/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The sentence about a function that is not in a file. It says whether the file was stripped,
 * because then the name may be right and only the symbols be missing, and how many functions have a
 * name at all: a hundred of ten thousand tell another story than all of them.
 */

#include "elf/missing-symbol.h"

#include "base/sentence.h"
#include "elf/declared-name.h"

static int not_a_function(const MissingSymbol *missing, char **ret_error) {
        int length = (int) missing->length;

        if (missing->match->imported)
                return sentence_error(
                        -ESRCH, ret_error,
                        "'%.*s' is not in %s, which only calls it: name the library that defines "
                        "it",
                        length, missing->name, missing->path);
        return sentence_error(-ESRCH, ret_error, "'%.*s' in %s is data, not a function", length,
                              missing->name, missing->path);
}

/* Nobody knows what it names. */
static int not_readable(const MissingSymbol *missing, char **ret_error) {
        return sentence_error(
                -ESRCH, ret_error,
                "No function '%.*s' was found in %s, whose symbol table is damaged, or too large "
                "for tlobd's memory: give an offset such as 0x12a0",
                (int) missing->length, missing->name, missing->path);
}

/* The file has no .symtab: what it exports is all that it names. */
static int not_in_stripped(const MissingSymbol *missing, size_t n, const char *near,
                           char **ret_error) {
        int length = (int) missing->length;
        const char *other = missing->other_build ?: "";
        const char *but = missing->other_build ? " (those in " : "";
        const char *build = missing->other_build ? " are of another build)" : "";

        if (n == 0)
                return sentence_error(
                        -ESRCH, ret_error,
                        "No function '%.*s' in %s, which is stripped and has no symbols at all: "
                        "install its debug symbols%s%s%s, or give an offset such as 0x12a0",
                        length, missing->name, missing->path, but, other, build);
        if (*near == '\0')
                return sentence_error(
                        -ESRCH, ret_error,
                        "No function '%.*s' in %s, which is stripped and names only %zu "
                        "function%s, none of them similar: install its debug symbols%s%s%s, or "
                        "give an offset such as 0x12a0",
                        length, missing->name, missing->path, n, n == 1 ? "" : "s", but, other,
                        build);
        return sentence_error(
                -ESRCH, ret_error,
                "No function '%.*s' in %s, which is stripped and names only %zu function%s; near "
                "names: %s; install its debug symbols%s%s%s for others",
                length, missing->name, missing->path, n, n == 1 ? "" : "s", near, but, other,
                build);
}

/* The file names all its functions. */
static int not_in_full(const MissingSymbol *missing, size_t n, const char *near, char **ret_error) {
        int length = (int) missing->length;
        const char *other = missing->other_common ?: "";
        const char *but = missing->other_common ? " (whether it was inlined is not known: " : "";
        const char *build = missing->other_common ? " is of another build)" : "";

        if (*near == '\0')
                return sentence_error(-ESRCH, ret_error,
                                      "No function '%.*s' in %s%s%s%s, nor one with a similar name "
                                      "among its %zu function%s",
                                      length, missing->name, missing->path, but, other, build, n,
                                      n == 1 ? "" : "s");
        return sentence_error(
                -ESRCH, ret_error,
                "No function '%.*s' in %s%s%s%s, which names %zu function%s; near names: %s",
                length, missing->name, missing->path, but, other, build, n, n == 1 ? "" : "s",
                near);
}

/* What .symtab does not have may be exported. */
static bool is_accepted(const char *text, void *userdata) {
        const MissingSymbol *missing = userdata;
        const SymbolName name = { .name = text, .length = strlen(text) };
        SymbolMatch match = {};
        int r;

        go_table_find(missing->go, &name, &match);
        if (match.n_places > 0)
                return match.n_places == 1;
        r = declared_name_count(missing->local, text);
        return r == 1 || (r == 0 && declared_name_count(missing->dynamic, text) == 1);
}

int missing_symbol_error(const MissingSymbol *missing, char **ret_error) {
        size_t n_local, n_dynamic, n_go = 0, n;
        _cleanup_free_ char *near = NULL;
        NearNames names;

        if (!ret_error)
                return -ESRCH;
        if (missing->match->imported || missing->match->data)
                return not_a_function(missing, ret_error);
        if (missing->local->n == 0 &&
            (missing->local->is_unreadable || missing->dynamic->is_unreadable))
                return not_readable(missing, ret_error);

        near_names_init(&names, missing->name, missing->length);
        n_local = symbol_table_offer(missing->local, &names);
        n_dynamic = symbol_table_offer(missing->dynamic, &names);
        /* What is exported is in both, or only there. */
        n = n_local > n_dynamic ? n_local : n_dynamic;
        if (missing->local->is_partial)
                n = n_local + n_dynamic;
        if (missing->local->n == 0)
                n_go = go_table_offer(missing->go, &names);
        n = n > n_go ? n : n_go;
        near = near_names_list(&names, is_accepted, (void *) missing);
        if (!near)
                return -ENOMEM;

        return missing->local->n == 0 && n_go == 0 ? not_in_stripped(missing, n, near, ret_error)
                                                   : not_in_full(missing, n, near, ret_error);
}
