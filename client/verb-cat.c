/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl cat": what is written about a unit, in the order in which it counts, each section with
 * its file and the numbers of its lines: sections of the unit's own files, of files in bindings.d
 * that name it, and budgets that were set by hand. It shows text, and what became of it is for
 * "show".
 */

#include <ctype.h>
#include <err.h>

#include "base/sentence.h"
#include "config/config.h"
#include "config/directories.h"
#include "config/file.h"
#include "note.h"
#include "proxy.h"
#include "unit-query.h"
#include "verbs.h"

typedef struct Cat {
        Client *client;
        json_object *bindings; /* Name and Unit of each */
        const char *unit;
        char **directories;    /* of the configuration */
        json_object *sections; /* for --json= */
        bool any;              /* something was shown */
} Cat;

/* The rest of a line that begins with "[WORD ", without the bracket; NULL: another line. */
static char *section_name(const char *line, size_t length, const char *word) {
        size_t n = strlen(word);

        while (length > 0 && isspace((unsigned char) line[length - 1]))
                length--;
        if (length < n + 4 || line[0] != '[' || line[length - 1] != ']' ||
            strncmp(line + 1, word, n) != 0 || !isspace((unsigned char) line[1 + n]))
                return NULL;
        line += 1 + n;
        length -= 2 + n;
        while (length > 0 && isspace((unsigned char) *line)) {
                line++;
                length--;
        }
        return strndup(line, length);
}

/* Is the section of that word and name about the unit? */
static bool is_wanted(const Cat *cat, const char *word, const char *name) {
        if (streq(word, CONFIG_UNIT_SECTION))
                return true;
        for (size_t i = 0; i < json_object_array_length(cat->bindings); i++) {
                const json_object *binding = json_object_array_get_idx(cat->bindings, i);

                if (streq(json_string(binding, "Name"), name))
                        return streq(json_string(binding, "Unit"), cat->unit);
        }
        return false;
}

static int show_text(Cat *cat, const char *file, unsigned line, const char *text) {
        _cleanup_free_ char *escaped = NULL;
        json_object *row;
        int r;

        escaped = text_escape(text);
        if (!escaped)
                return -ENOMEM;
        if (cat->client->output.json == JSON_OFF) {
                (void) printf("%5u  %s\n", line, escaped);
                return 0;
        }
        row = json_object_new_object();
        if (!row)
                return -ENOMEM;
        r = json_append(cat->sections, row);
        if (r >= 0)
                r = json_add_string(row, "File", file);
        if (r >= 0)
                r = json_add(row, "Line", json_object_new_int64(line));
        return r < 0 ? r : json_add_string(row, "Text", escaped);
}

static int show_line(Cat *cat, const char *file, bool *shown, unsigned line, const char *text,
                     size_t length) {
        _cleanup_free_ char *copy = NULL;

        while (length > 0 && isspace((unsigned char) text[length - 1]))
                length--;
        if (length == 0)
                return 0;
        copy = strndup(text, length);
        if (!copy)
                return -ENOMEM;
        if (!*shown && cat->client->output.json == JSON_OFF)
                (void) printf("%s# %s\n", cat->any ? "\n" : "", file);
        cat->any = *shown = true;
        return show_text(cat, file, line, copy);
}

/* The sections of one file with that word that are about the unit. */
static int show_file(Cat *cat, const char *path, const char *word) {
        _cleanup_free_ char *text = NULL;
        bool wanted = false, shown = false;
        size_t size, length;
        unsigned line = 0;
        int r;

        r = config_file_load(path, &text, &size);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        for (const char *p = text, *end = text + size; p < end && r >= 0; p += length + 1) {
                const char *newline = memchr(p, '\n', (size_t) (end - p));

                length = (size_t) ((newline ?: end) - p);
                line++;
                if (length > 0 && *p == '[') {
                        _cleanup_free_ char *name = section_name(p, length, word);

                        wanted = name && is_wanted(cat, word, name);
                }
                if (wanted)
                        r = show_line(cat, path, &shown, line, p, length);
        }
        return r;
}

static int no_section(const ConfigPlace *place, const char *section, void *userdata) {
        return 0;
}

static int no_key(const ConfigPlace *place, const char *key, const char *value, void *userdata) {
        return 0;
}

static int no_problem(const ConfigPlace *place, const char *key, const char *sentence,
                      void *userdata) {
        return 0;
}

static int show_directories(Cat *cat, size_t n, const char *subdirectory, const char *word) {
        static const ConfigHandlers handlers = {
                .section = no_section,
                .key = no_key,
                .problem = no_problem,
        };
        _cleanup_(config_file_list_done) ConfigFileList list = {};
        int r;

        r = config_file_list((const char *const *) cat->directories, n, subdirectory, &handlers,
                             NULL, &list);
        for (size_t i = 0; i < list.n && r >= 0; i++)
                r = show_file(cat, list.paths[i], word);
        return r;
}

static int show_unit(Cat *cat, const UnitFiles *files) {
        size_t n = strings_count(cat->directories);
        int r = 0;

        for (char **path = files->paths; *path && r >= 0; path++)
                r = show_file(cat, *path, CONFIG_UNIT_SECTION);
        if (r >= 0)
                r = show_directories(cat, n, "bindings.d", "Binding");
        /* Only the first two are for what is set by hand. */
        return r < 0 ? r : show_directories(cat, 2, "overrides.d", "Override");
}

/* Says what is wrong. */
static int find_directories(const Client *client, char ***ret) {
        _cleanup_free_ char *error = NULL;
        int r;

        r = config_directories_of(options_scope(&client->options), ret, &error);
        if (r < 0)
                warnx("%s", error ?: "Out of memory");
        return r;
}

ExitStatus verb_cat(Client *client, int argc, char **argv) {
        const char *scope = options_scope_text(&client->options);
        _cleanup_(strings_freep) char **directories = NULL;
        _cleanup_(unit_files_done) UnitFiles files = {};
        _cleanup_json_ json_object *bindings = NULL, *sections = NULL;
        Cat cat = { .client = client };
        int r;

        if (find_directories(client, &directories) < 0 ||
            unit_files_query(&client->connection, argv[0], &files) < 0 ||
            proxy_list_bindings(&client->connection, &bindings) < 0)
                return STATUS_FAILED;
        sections = json_object_new_array();
        if (!sections)
                return status_of_memory(-ENOMEM);

        cat.bindings = bindings;
        cat.sections = sections;
        cat.unit = files.id;
        cat.directories = directories;
        r = show_unit(&cat, &files);
        if (r >= 0 && client->output.json != JSON_OFF)
                r = output_json(&client->output, sections);
        if (r >= 0 && !cat.any) {
                warnx("No file has bindings of %s; 'tlobctl%s edit %s' adds one", files.id, scope,
                      files.id);
                return STATUS_FAILED;
        }
        if (r >= 0 && files.needs_reload)
                note("The files of %s have changed; 'systemctl%s daemon-reload' applies them",
                     files.id, scope);
        return status_of_memory(r);
}
