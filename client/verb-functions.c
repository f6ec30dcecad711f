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
#include "elf/library.h"
#include "elf/probe-kind.h"
#include "unit-query.h"
#include "verbs.h"

static const Field fields[] = {
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
        else
                (void) status_of_memory(r);
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

static int complain_none(const ElfFile *elf, const ElfFunctions *functions,
                         const Pattern *pattern) {
        const char *path = elf_file_path(elf);

        if (functions->n == 0)
                warnx("%s names no functions%s", path,
                      functions->is_stripped ? ": it is stripped; install its debug symbols" : "");
        else
                warnx("None of the %zu functions that %s names%s matches '%s'", functions->n, path,
                      functions->is_stripped ? ", which is stripped," : "", pattern->text);
        return -ENOENT;
}

/* Returns 0, -ENOMEM, or another negative errno after it has said what is wrong. */
static int show(Client *client, ElfFile *elf, const Pattern *pattern) {
        _cleanup_(elf_functions_done) ElfFunctions functions = {};
        _cleanup_json_ json_object *rows = NULL;
        Output *output = &client->output;
        int r;

        r = elf_file_list_functions(elf, &functions);
        if (r < 0)
                return r;
        rows = json_object_new_array();
        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < functions.n; i++) {
                r = add_row(elf, &functions.items[i], pattern, rows);
                if (r < 0)
                        return r;
        }
        if (json_object_array_length(rows) == 0)
                return complain_none(elf, &functions, pattern);
        return output->json != JSON_OFF ? output_json(output, rows)
                                        : output_table(output, fields, rows, "function");
}

ExitStatus verb_functions(Client *client, int argc, char **argv) {
        const char *text = argc > 1 ? argv[1] : NULL;
        const Pattern pattern = { .text = text, .is_glob = text && strpbrk(text, "*?[") };
        _cleanup_free_ char *path = NULL, *error = NULL;
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        int r;

        if (!connection_is_local(&client->connection)) {
                warnx("Files can only be read on this machine; leave out --host= and --machine=");
                return STATUS_FAILED;
        }
        if (find_file(client, argv[0], &path) < 0)
                return STATUS_FAILED;
        r = elf_file_open(path, &elf, &error);
        if (r < 0 && error)
                warnx("%s", error);
        if (r < 0 && error)
                return STATUS_FAILED;
        if (r >= 0)
                r = show(client, elf, &pattern);
        return r == -ENOMEM ? status_of_memory(r) : status_of(r);
}
