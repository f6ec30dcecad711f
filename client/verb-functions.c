/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl functions": what can be written after Function=. Only files are read, and only with the
 * caller's own rights; tlobd is not asked. A name that several functions have is of no use there,
 * so the offset stands in its place.
 */

#include <err.h>
#include <fnmatch.h>
#include <inttypes.h>

#include "base/mangled-name.h"
#include "base/sentence.h"
#include "bus-json.h"
#include "elf/functions.h"
#include "elf/libraries.h"
#include "elf/library.h"
#include "elf/probe-kind.h"
#include "unit-query.h"
#include "verbs.h"

/* The first one is for those of several files. */
static const Field fields[] = {
        { "Executable", "EXECUTABLE", FIELD_TEXT },
        { "Function", "FUNCTION", FIELD_TEXT },
        { "Offset", "OFFSET", FIELD_OFFSET },
        { "Size", "SIZE", FIELD_COUNT },
        { "Probe", "PROBE", FIELD_TEXT },
        { "Declaration", "DECLARATION", FIELD_OPTIONAL },
        {},
};

#define DECLARATION_MAX 512

typedef struct Pattern {
        const char *text; /* NULL: all */
        bool is_glob;     /* else a part of the name */
} Pattern;

static bool pattern_matches(const Pattern *pattern, const char *name) {
        if (!pattern->text)
                return true;
        return pattern->is_glob ? fnmatch(pattern->text, name, 0) == 0
                                : strstr(name, pattern->text) != NULL;
}

/* "libc.so", "libc.so.6" */
static bool is_library(const char *name) {
        const char *end = strstr(name, ".so");

        return end && (end[3] == '\0' || end[3] == '.');
}

/* A path, the name of a library, or a service. Says what is wrong. */
static int find_file(Client *client, const char *name, char **ret) {
        int r = 0;

        if (!strchr(name, '/') && !is_library(name))
                return unit_program_query(&client->connection, name, ret);
        if (strchr(name, '/')) {
                *ret = strdup(name);
                r = *ret ? 0 : -ENOMEM;
        } else
                r = library_find(name, NULL, ret);
        if (r == -ENOENT)
                warnx("No library '%s' was found; give its path", name);
        return r;
}

static const char *describe_probe(ProbeKind kind) {
        static const char *const words[PROBE_N_KINDS] = {
                [PROBE_UNKNOWN] = "",
                [PROBE_OPTIMISED] = "optimised",
                [PROBE_EMULATED] = "emulated",
                [PROBE_STEPPED] = "single-stepped",
        };

        return words[kind];
}

static int make_row(const ElfFile *elf, const ElfFunction *function, const char *declaration,
                    json_object **ret) {
        _cleanup_json_ json_object *row = json_object_new_object();
        char offset[sizeof("0x") + 16];
        int r;

        if (!row)
                return -ENOMEM;
        (void) snprintf(offset, sizeof(offset), "0x%" PRIx64, function->offset);
        r = json_add_string(row, "Function", function->ambiguous ? offset : function->name);
        if (r >= 0)
                r = json_add_string(row, "Executable", elf_file_path(elf));
        if (r >= 0)
                r = json_add(row, "Offset", json_object_new_uint64(function->offset));
        if (r >= 0)
                r = json_add(row, "Size", json_object_new_uint64(function->size));
        if (r >= 0)
                r = json_add_string(
                        row, "Probe",
                        describe_probe(probe_kind_at(elf_file_fd(elf), function->offset)));
        if (r >= 0)
                r = json_add_string(row, "Declaration", declaration);
        if (r >= 0)
                *ret = TAKE_PTR(row);
        return r;
}

static int add_row(const ElfFile *elf, const ElfFunction *function, const Pattern *pattern,
                   json_object *rows) {
        char declaration[DECLARATION_MAX];
        json_object *row;
        int r;

        (void) mangled_name_decode(function->name, true, declaration, sizeof(declaration));
        if (!pattern_matches(pattern, function->name) && !pattern_matches(pattern, declaration))
                return 0;
        if (function->ambiguous && *declaration == '\0')
                (void) snprintf(declaration, sizeof(declaration), "%s", function->name);
        r = make_row(elf, function, declaration, &row);
        return r < 0 ? r : json_append(rows, row);
}

/* What was looked through. */
typedef struct Search {
        Pattern pattern;
        json_object *rows;
        size_t n_files;
        size_t n_functions;
        bool any_stripped;
} Search;

static int complain_none(const Search *search, const char *path) {
        bool one = search->n_files == 1;
        const char *what = one ? "which is stripped" : "some of which are stripped";
        _cleanup_free_ char *files = NULL;

        files = one ? strdup(path)
                    : sentence_make("%s and %zu libraries", path, search->n_files - 1);
        if (!files)
                return -ENOMEM;
        if (search->n_functions == 0)
                warnx("%s name%s no functions%s", files, one ? "s" : "",
                      search->any_stripped ? one ? ": it is stripped; install its debug symbols"
                                                 : ": they are stripped; install debug symbols"
                                           : "");
        else
                warnx("None of the %zu functions that %s name%s%s%s%s matches '%s'",
                      search->n_functions, files, one ? "s" : "", search->any_stripped ? ", " : "",
                      search->any_stripped ? what : "", search->any_stripped ? "," : "",
                      search->pattern.text);
        return -ENOENT;
}

/* Adds the functions of a file. */
static int look_through(Search *search, ElfFile *elf) {
        _cleanup_(elf_functions_done) ElfFunctions functions = {};
        int r;

        r = elf_file_list_functions(elf, &functions);
        for (size_t i = 0; i < functions.n && r >= 0; i++)
                r = add_row(elf, &functions.items[i], &search->pattern, search->rows);
        search->n_files++;
        search->n_functions += functions.n;
        search->any_stripped |= functions.is_stripped;
        return r;
}

/* Adds those of its libraries. One that is not there is no reason not to show the others. */
static int look_through_libraries(Search *search, const char *program) {
        _cleanup_(libraries_done) Libraries libraries = {};
        int r;

        r = libraries_find(&ROOT_OWN, program, &libraries);
        if (r == -E2BIG)
                warnx("%s has more than %u libraries", program, LIBRARIES_MAX);
        for (size_t i = 1; i < libraries.n && r >= 0; i++) {
                const Library *library = &libraries.items[i];
                _cleanup_(elf_file_freep) ElfFile *elf = NULL;
                _cleanup_free_ char *error = NULL;

                if (!library->path)
                        warnx("No library '%s', which %s needs, was found, ignoring", library->name,
                              libraries.items[library->loader].path);
                else if (elf_file_open(library->path, &elf, &error) < 0)
                        warnx("%s, ignoring", error ?: "Out of memory");
                else
                        r = look_through(search, elf);
        }
        return r;
}

/* Returns 0, -ENOMEM, or another negative errno after it has said what is wrong. */
static int search_file(const Client *client, Search *search, const char *path) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        r = elf_file_open(path, &elf, &error);
        if (r < 0 && error)
                warnx("%s", error);
        if (r >= 0)
                r = look_through(search, elf);
        if (r >= 0 && client->options.libraries)
                r = look_through_libraries(search, path);
        return r >= 0 && json_object_array_length(search->rows) == 0 ? complain_none(search, path)
                                                                     : r;
}

static int show(Client *client, const char *name, const char *pattern) {
        Search search = {
                .pattern = { .text = pattern, .is_glob = pattern && strpbrk(pattern, "*?[") },
        };
        _cleanup_json_ json_object *rows = json_object_new_array();
        _cleanup_free_ char *path = NULL;
        Output *output = &client->output;
        int r;

        if (!rows)
                return -ENOMEM;
        search.rows = rows;
        r = find_file(client, name, &path);
        if (r >= 0)
                r = search_file(client, &search, path);
        if (r < 0)
                return r;
        return output->json != JSON_OFF ? output_json(output, rows)
                                        : output_table(output, fields + !client->options.libraries,
                                                       rows, "function");
}

ExitStatus verb_functions(Client *client, int argc, char **argv) {
        int r;

        if (!connection_is_local(&client->connection)) {
                warnx("Files can only be read on this machine; leave out --host= and --machine=");
                return STATUS_FAILED;
        }
        r = show(client, argv[0], argc > 1 ? argv[1] : NULL);
        return r == -ENOMEM ? status_of_memory(r) : status_of(r);
}
