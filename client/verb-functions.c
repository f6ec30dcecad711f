/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl functions": what can be written after Function=, USDT probes and marks. Only files are
 * read, and only with the caller's own rights; tlobd is not asked. A name that several functions
 * have is of no use there, so the offset stands in its place.
 *
 * How a function can be left is only known when it has been decoded, which takes up to some
 * milliseconds: so it is looked at if the list is short, as one is from which somebody chooses.
 */

#include <err.h>
#include <fnmatch.h>
#include <inttypes.h>

#include "base/mangled-name.h"
#include "base/program.h"
#include "base/sentence.h"
#include "base/strings.h"
#include "base/unit-name.h"
#include "binding/binding.h"
#include "bus-json.h"
#include "debug-servers.h"
#include "elf/function-exits.h"
#include "elf/functions.h"
#include "elf/libraries.h"
#include "elf/library.h"
#include "elf/mark.h"
#include "elf/probe-kind.h"
#include "elf/usdt.h"
#include "loaded-files.h"
#include "note.h"
#include "unit-query.h"
#include "verbs.h"

/* The first one is for those of several files. */
static const Field fields[] = {
        { "Executable", "EXECUTABLE", FIELD_TEXT },
        { "Name", "FUNCTION", FIELD_WRAPPED },
        { "Offset", "OFFSET", FIELD_OFFSET },
        { "Size", "SIZE", FIELD_COUNT },
        { "Probe", "PROBE", FIELD_TEXT },
        { "Declaration", "DECLARATION", FIELD_OPTIONAL },
        { "Remark", "REMARK", FIELD_OPTIONAL },
        {},
};

#define DECLARATION_MAX 512
#define REMARKS_MAX     200 /* functions that are looked at closely */

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

static bool wants_marks(const Pattern *pattern) {
        return pattern->text && strncmp(pattern->text, MARK_KEY, strlen(MARK_KEY)) == 0;
}

/* "libc.so", "libc.so.6" */
static bool is_library(const char *name) {
        const char *end = strstr(name, ".so");

        return end && (end[3] == '\0' || end[3] == '.');
}

static bool is_unit(const char *name) {
        return !strchr(name, '/') && !is_library(name);
}

/*
 * A path, the name of a library, or a service, whose processes may see other files. Says what is
 * wrong.
 */
static int find_file(Client *client, const char *name, Root *ret_root, char **ret) {
        int r = 0;

        *ret_root = ROOT_OWN;
        if (is_unit(name))
                return unit_program_query(&client->connection, name, ret_root, ret);
        if (strchr(name, '/')) {
                *ret = strdup(name);
                r = *ret ? 0 : -ENOMEM;
        } else
                r = library_find(name, NULL, ret);
        if (r == -ENOENT)
                warnx("No library '%s' was found; give its path", name);
        return r;
}

/* What was looked through. */
typedef struct Search {
        Pattern pattern;
        Root root; /* in which its paths are */
        json_object *rows;
        bool in_table;
        DebugServers *servers; /* NULL: none are asked */
        size_t n_fetched;      /* files of which rows have names that only these know */
        char *build_id;        /* of the last of these */
        size_t n_files;
        size_t n_functions;
        bool any_stripped;
        bool any_loaded; /* that is neither the program nor one of its libraries */
} Search;

/* A function, and what it is in the source. */
typedef struct Declared {
        const ElfFunction *function;
        char *text;     /* "": it has no other name; owned */
        bool is_shared; /* other functions of the file are declared alike */
} Declared;

/* Those that are declared alike together, those at one place beside each other. */
static int compare_declared(const void *a, const void *b) {
        const Declared *x = a, *y = b;
        int r = strcmp(x->text, y->text);

        if (r != 0)
                return r;
        return x->function->offset < y->function->offset
                       ? -1
                       : x->function->offset > y->function->offset;
}

/* As they were. */
static int compare_places(const void *a, const void *b) {
        const ElfFunction *x = ((const Declared *) a)->function;
        const ElfFunction *y = ((const Declared *) b)->function;

        return x < y ? -1 : x > y;
}

static void free_declared(Declared *declared, size_t n) {
        for (size_t i = 0; declared && i < n; i++)
                free(declared[i].text);
        free(declared);
}

static void find_shared(Declared *declared, size_t n) {
        qsort(declared, n, sizeof(*declared), compare_declared);
        for (size_t begin = 0, end = 0; begin < n; begin = end) {
                while (end < n && streq(declared[end].text, declared[begin].text))
                        end++;
                for (size_t i = begin; i < end; i++)
                        declared[i].is_shared = declared[begin].function->offset !=
                                                declared[end - 1].function->offset;
        }
        qsort(declared, n, sizeof(*declared), compare_places);
}

/* The functions of a file, in their order. NULL: no memory. */
static Declared *declare_all(const ElfFunctions *functions) {
        Declared *declared = calloc(functions->n + 1, sizeof(*declared));
        char text[DECLARATION_MAX];

        for (size_t i = 0; declared && i < functions->n; i++) {
                (void) mangled_name_decode(functions->items[i].name, true, text, sizeof(text));
                declared[i] = (Declared) { .function = &functions->items[i], .text = strdup(text) };
                if (!declared[i].text) {
                        free_declared(declared, i);
                        return NULL;
                }
        }
        if (declared)
                find_shared(declared, functions->n);
        return declared;
}

/* What Function= takes for it: as in the source, if that is of this function only. */
static const char *choose_name(const Declared *declared, const char *offset) {
        const ElfFunction *function = declared->function;

        if (!function->is_fetched && *declared->text && !declared->is_shared &&
            strlen(declared->text) <= BINDING_VALUE_MAX)
                return declared->text;
        if (function->is_fetched || function->ambiguous ||
            strlen(function->name) > BINDING_VALUE_MAX)
                return offset;
        return function->name;
}

static const char *kind_of(const ElfFunction *function) {
        if (function->is_mark)
                return "mark";
        return function->is_usdt ? "usdt" : "function";
}

/* What is read by people says which key takes the name of a mark. */
static const char *own_name(const ElfFunction *function) {
        return function->name + (function->is_mark ? strlen(MARK_KEY) : 0);
}

/* In a table, what is written twice only takes room. */
static int add_names(json_object *row, const Declared *declared, bool in_table) {
        const ElfFunction *function = declared->function;
        const char *name, *declaration = declared->text;
        char offset[sizeof("0x") + 16];
        int r;

        (void) snprintf(offset, sizeof(offset), "0x%" PRIx64, function->offset);
        name = function->is_mark && !in_table ? own_name(function) : choose_name(declared, offset);
        if (function->arguments)
                declaration = function->arguments;
        else if (*declaration == '\0' && name == offset)
                declaration = function->name;
        r = json_add_string(row, "Name", name);
        if (r >= 0 && !in_table)
                r = json_add_string(row, "Function",
                                    function->ambiguous ? offset : own_name(function));
        if (r >= 0 && !in_table)
                r = json_add_string(row, "Kind", kind_of(function));
        if (r >= 0)
                r = json_add_string(row, "Declaration",
                                    in_table && name == declaration ? "" : declaration);
        return r;
}

static int make_row(const Search *search, const ElfFile *elf, const Declared *declared,
                    json_object **ret) {
        const ElfFunction *function = declared->function;
        _cleanup_json_ json_object *row = json_object_new_object();
        int r;

        if (!row)
                return -ENOMEM;
        r = add_names(row, declared, search->in_table);
        if (r >= 0)
                r = json_add_string(row, "Executable", elf_file_path(elf));
        if (r >= 0 && !search->in_table)
                r = json_add_string(row, "BuildID", elf_file_build_id(elf) ?: "");
        if (r >= 0)
                r = json_add(row, "Offset", json_object_new_uint64(function->offset));
        if (r >= 0)
                r = json_add(row, "Size", json_object_new_uint64(function->size));
        if (r >= 0)
                r = json_add_string(
                        row, "Probe",
                        probe_kind_to_string(probe_kind_at(elf_file_fd(elf), function->offset)));
        if (r >= 0)
                *ret = TAKE_PTR(row);
        return r;
}

static bool is_wanted(const Search *search, const Declared *declared) {
        return pattern_matches(&search->pattern, declared->function->name) ||
               pattern_matches(&search->pattern, declared->text);
}

/* Why Function= refuses it, or measures less than one might think. "": neither. */
static int make_remark(const ElfFile *elf, const ElfFunction *function, char **ret) {
        _cleanup_(function_exits_done) FunctionExits exits = {};
        uint64_t entry = function->offset;
        const char *why = NULL;
        int r;

        if (function->is_usdt) {
                *ret = strdup("");
                return *ret ? 0 : -ENOMEM;
        }
        (void) function_find_entry(elf, function->offset, &entry);
        r = function_find_exits(elf, entry, &exits, &why);
        if (r < 0 && r != -EOPNOTSUPP)
                return r;
        if (r < 0)
                *ret = sentence_make("refused: it %s", why);
        else if (elf_file_is_go(elf) && exits.n_switches == 0)
                *ret = strdup("refused: it is not a function of Go");
        else if (probe_harm_at(elf_file_fd(elf), exits.start) != PROBE_HARMLESS)
                *ret = strdup("refused: a probe on its first instruction would do harm");
        else
                *ret = strdup(exits.n_returns == 0 ? "left by tail calls only" : "");
        return *ret ? 0 : -ENOMEM;
}

static int add_row(const Search *search, const ElfFile *elf, const Declared *declared,
                   bool with_remark) {
        _cleanup_free_ char *remark = NULL;
        json_object *row;
        int r;

        r = make_row(search, elf, declared, &row);
        if (r >= 0)
                r = json_append(search->rows, row);
        if (r >= 0 && with_remark)
                r = make_remark(elf, declared->function, &remark);
        if (r < 0)
                return r;
        return remark ? json_add_string(row, "Remark", remark) : json_add(row, "Remark", NULL);
}

/* All of the list have one, or none. */
static int take_remarks_back(Search *search) {
        int r = 0;

        if (json_object_array_length(search->rows) <= REMARKS_MAX)
                return 0;
        for (size_t i = 0; r >= 0 && i < json_object_array_length(search->rows); i++)
                r = json_add(json_object_array_get_idx(search->rows, i), "Remark", NULL);
        return r;
}

static int add_rows(Search *search, const ElfFile *elf, const Declared *declared, size_t n) {
        size_t n_rows = json_object_array_length(search->rows);
        bool any_fetched = false;
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                if (!is_wanted(search, &declared[i]))
                        continue;
                any_fetched |= declared[i].function->is_fetched;
                n_rows++;
        }
        if (any_fetched) {
                r = free_and_strdup(&search->build_id, elf_file_build_id(elf));
                search->n_fetched++;
        }
        for (size_t i = 0; i < n && r >= 0; i++)
                if (is_wanted(search, &declared[i]))
                        r = add_row(search, elf, &declared[i], n_rows <= REMARKS_MAX);
        return r;
}

static int complain_none(const Search *search, const char *path) {
        bool one = search->n_files == 1;
        const char *what = one ? "which is stripped" : "some of which are stripped";
        _cleanup_free_ char *files = NULL;

        files = one ? text_escape(path)
                    : sentence_make("%s and %zu %s", path, search->n_files - 1,
                                    search->n_files == 2 ? "library" : "libraries");
        if (!files)
                return -ENOMEM;
        if (search->pattern.text &&
            strncmp(search->pattern.text, USDT_PLACE, strlen(USDT_PLACE)) == 0)
                warnx("No USDT probe of %s matches '%s'", files, search->pattern.text);
        else if (wants_marks(&search->pattern))
                warnx("No mark of %s matches '%s'", files, search->pattern.text);
        else if (search->n_functions == 0)
                warnx("%s name%s no functions%s%s", files, one ? "s" : "",
                      search->any_stripped ? one ? ": it is stripped; install its debug symbols"
                                                 : ": they are stripped; install debug symbols"
                                           : "",
                      search->any_stripped ? debug_servers_advise(search->servers) : "");
        else
                warnx("None of the %zu functions that %s name%s%s%s%s matches '%s'%s%s",
                      search->n_functions, files, one ? "s" : "", search->any_stripped ? ", " : "",
                      search->any_stripped ? what : "", search->any_stripped ? "," : "",
                      search->pattern.text, search->any_stripped ? "; install debug symbols" : "",
                      search->any_stripped ? debug_servers_advise(search->servers) : "");
        return -ENOENT;
}

/* Adds the functions of a file. */
static int look_through(Search *search, ElfFile *elf) {
        _cleanup_(elf_functions_done) ElfFunctions functions = {};
        Declared *declared;
        int r;

        if (search->servers)
                elf_file_set_debug_finder(elf, debug_servers_find, search->servers);
        r = elf_file_list_functions(elf, &functions);
        if (r < 0)
                return r;
        declared = declare_all(&functions);
        if (!declared)
                return -ENOMEM;
        r = add_rows(search, elf, declared, functions.n);
        free_declared(declared, functions.n);
        search->n_files++;
        search->n_functions += functions.n;
        search->any_stripped |= functions.is_stripped;
        return r;
}

/* Adds those of its libraries. One that is not there is no reason not to show the others. */
static int look_through_libraries(Search *search, const char *program) {
        _cleanup_(libraries_done) Libraries libraries = {};
        int r;

        r = libraries_find(&search->root, program, &libraries);
        if (r == -E2BIG)
                warnx("%s has more than %u libraries", program, LIBRARIES_MAX);
        for (size_t i = 1; i < libraries.n && r >= 0; i++) {
                const Library *library = &libraries.items[i];
                _cleanup_(elf_file_freep) ElfFile *elf = NULL;
                _cleanup_free_ char *error = NULL;

                if (!library->path) {
                        error = sentence_make("No library '%s', which %s needs, was found",
                                              library->name, libraries.items[library->loader].path);
                        warnx("%s, ignoring", error ?: "Out of memory");
                } else if (elf_file_open_in(&search->root, library->path, &elf, &error) < 0)
                        warnx("%s, ignoring", error ?: "Out of memory");
                else
                        r = look_through(search, elf);
        }
        return r;
}

static int is_mark(const UsdtNote *note, void *userdata) {
        MarkSide side;

        return mark_parse_probe(note->provider, note->name, &side) > 0;
}

/* A file that cannot be read, or is none of ELF, has no marks. */
static int look_for_marks(Search *search, const Root *root, const char *path) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        int r;

        r = elf_file_open_in(root, path, &elf, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        if (elf_file_visit_usdt(elf, is_mark, NULL) <= 0)
                return 0;
        search->any_loaded = true;
        return look_through(search, elf);
}

/* Interpreters have the marks of their programs in files that these open, see tlob-mark-file(3). */
static int look_through_loaded(Client *client, Search *search, const char *name,
                               const char *program) {
        _cleanup_free_ char *unit = unit_name_complete(name);
        _cleanup_(strings_freep) char **paths = NULL;
        _cleanup_(root_done) Root root = ROOT_OWN;
        uint32_t pid;
        int r;

        if (!unit)
                return -ENOMEM;
        pid = unit_main_pid_query(&client->connection, unit);
        if (pid == 0)
                return 0;
        r = loaded_files_list(pid, &paths);
        if (r >= 0)
                r = root_of_program(pid, &root);
        if (r == -EACCES || r == -EPERM)
                note("Only root sees which files the main process of %s has loaded", unit);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        for (char **path = paths; path && *path && r >= 0; path++)
                if (!streq(*path, program))
                        r = look_for_marks(search, &root, *path);
        return r;
}

/* Returns 0, -ENOMEM, or another negative errno after it has said what is wrong. */
static int search_file(Client *client, Search *search, const char *name, const char *path) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        r = elf_file_open_in(&search->root, path, &elf, &error);
        if (r < 0 && error)
                warnx("%s", error);
        if (r >= 0)
                r = look_through(search, elf);
        if (r >= 0 && client->options.libraries)
                r = look_through_libraries(search, path);
        if (r >= 0 && is_unit(name) && wants_marks(&search->pattern))
                r = look_through_loaded(client, search, name, path);
        if (r >= 0)
                r = take_remarks_back(search);
        return r >= 0 && json_object_array_length(search->rows) == 0 ? complain_none(search, path)
                                                                     : r;
}

static void search_done(Search *search) {
        debug_servers_free(search->servers);
        root_done(&search->root);
        free(search->build_id);
}

/* What only we have asked for. */
static void note_fetched(const Search *search) {
        if (search->n_fetched == 1)
                note("tlobd does not ask the servers in DEBUGINFOD_URLS: write the offset, "
                     "together with BuildID=%s",
                     search->build_id);
        else if (search->n_fetched > 1)
                note("tlobd does not ask the servers in DEBUGINFOD_URLS: write offsets, together "
                     "with the BuildID= that --json shows");
}

static int show(Client *client, const char *name, const char *pattern) {
        _cleanup_(search_done) Search search = {
                .pattern = { .text = pattern, .is_glob = pattern && strpbrk(pattern, "*?[") },
                .root = ROOT_OWN,
                .servers = debug_servers_new(),
        };
        _cleanup_json_ json_object *rows = json_object_new_array();
        _cleanup_free_ char *path = NULL;
        Output *output = &client->output;
        int r;

        if (!rows)
                return -ENOMEM;
        search.rows = rows;
        search.in_table = output->json == JSON_OFF;
        r = find_file(client, name, &search.root, &path);
        if (r >= 0)
                r = search_file(client, &search, name, path);
        if (r < 0)
                return r;
        if (output->json != JSON_OFF)
                return output_json(output, rows);
        r = output_table(output, fields + !(client->options.libraries || search.any_loaded), rows,
                         "function");
        note_fetched(&search);
        return r;
}

ExitStatus verb_functions(Client *client, int argc, char **argv) {
        int r;

        if (!connection_is_local(&client->connection)) {
                (void) connection_complain_elsewhere(&client->connection, "A program or library");
                return STATUS_FAILED;
        }
        r = show(client, argv[0], argc > 1 ? argv[1] : NULL);
        return r == -ENOMEM ? status_of_memory(r) : status_of(r);
}
