/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Standard output. A verb says what to show, as a JSON object and a table of fields; how it looks
 * (columns by libsmartcols, colours, the pager, times and offsets as people read them) is decided
 * here only. It knows nothing of the bus.
 *
 * What is shown may come from anyone: a task chooses its own name, and could put an escape sequence
 * into it. So all text is escaped on its way to people; JSON has its own escapes.
 */

#include "output.h"

#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>

#include "bus-json.h"
#include "duration.h"
#include "sentence.h"

#define COLOR_GOOD    "\x1b[32m"
#define COLOR_BAD     "\x1b[1;31m"
#define COLOR_PROBLEM "\x1b[33m"
#define COLOR_TITLE   "\x1b[1m"
#define COLOR_END     "\x1b[0m"

#define UNKNOWN "-"

static inline void scols_tablep(struct libscols_table **table) {
        scols_unref_table(*table);
}

/* SYSTEMD_COLORS=, else NO_COLOR=, else whether it is a terminal. */
static bool colors_wanted(void) {
        const char *systemd = getenv("SYSTEMD_COLORS"), *none = getenv("NO_COLOR");
        static const char *const off[] = { "0", "no", "n", "false", "f", "off" };

        for (size_t i = 0; systemd && i < ELEMENTSOF(off); i++)
                if (strcasecmp(systemd, off[i]) == 0)
                        return false;
        if (systemd && systemd[0] != '\0' && strncmp(systemd, "auto", 4) != 0)
                return true;
        if (none && none[0] != '\0')
                return false;
        return isatty(STDOUT_FILENO) && !streq_empty(getenv("TERM"), "dumb");
}

void output_init(Output *output, const Options *options) {
        *output = (Output){
                .json = options->json,
                .legend = options->legend,
                .colors = colors_wanted(),
                .pager_wanted = options->pager,
        };
}

int output_done(Output *output) {
        if (output->pager.pid > 0) {
                pager_close(&output->pager);
                return 0;
        }
        if (ferror(stdout))
                return -EIO;
        return fflush(stdout) == 0 ? 0 : -errno;
}

static void begin(Output *output) {
        if (output->pager_wanted)
                pager_open(&output->pager);
}

int output_json(Output *output, json_object *value) {
        int flags = JSON_C_TO_STRING_NOSLASHESCAPE;
        const char *text;

        flags |= output->json == JSON_PRETTY ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
                                             : JSON_C_TO_STRING_PLAIN;
        text = json_object_to_json_string_ext(value, flags);
        if (!text)
                return -ENOMEM;
        begin(output);
        (void) puts(text);
        return 0;
}

static char *format_list(const json_object *list) {
        size_t n = json_object_array_length(list);
        char *text = strdup("");

        for (size_t i = 0; text && i < n; i++) {
                const char *item = json_object_get_string(json_object_array_get_idx(list, i));
                _cleanup_free_ char *before = text;

                text = sentence_make("%s%s%s", before, i > 0 ? ", " : "", item ?: "");
        }
        return text;
}

static char *format_number(FieldKind kind, const json_object *value) {
        uint64_t n = json_object_get_uint64(value);
        char time[DURATION_MAX];

        switch (kind) {
        case FIELD_DURATION:
                return strdup(duration_format_short(n, time));
        case FIELD_BUDGET:
                return strdup(duration_format(n, time));
        case FIELD_OFFSET:
                return sentence_make("0x%" PRIx64, n);
        default:
                return sentence_make("%" PRIu64, n);
        }
}

/* What people read. "" for what is not there; NULL for want of memory. */
static char *format_field(const Field *field, const json_object *object) {
        json_object *value = NULL;

        if (!json_object_object_get_ex(object, field->key, &value))
                return strdup("");
        switch (json_object_get_type(value)) {
        case json_type_null:
                return strdup(field->kind == FIELD_BUDGET ? "infinity" : UNKNOWN);
        case json_type_int:
                return format_number(field->kind, value);
        case json_type_array:
                return format_list(value);
        default:
                return text_escape(json_object_get_string(value));
        }
}

/* The colour of a value, NULL for none. */
static const char *field_color(FieldKind kind, const char *text) {
        if (kind == FIELD_STATE && streq(text, "active"))
                return COLOR_GOOD;
        if (kind == FIELD_STATE && streq(text, "failed"))
                return COLOR_BAD;
        if (kind == FIELD_PROBLEM && !streq(text, "") && !streq(text, "0") && !streq(text, UNKNOWN))
                return COLOR_PROBLEM;
        return NULL;
}

static bool is_right_aligned(FieldKind kind) {
        return kind == FIELD_COUNT || kind == FIELD_PROBLEM || kind == FIELD_DURATION ||
               kind == FIELD_BUDGET || kind == FIELD_OFFSET;
}

static int add_columns(struct libscols_table *table, const Field *fields) {
        for (; fields->key; fields++)
                if (!scols_table_new_column(table, fields->title, 0,
                                            is_right_aligned(fields->kind) ? SCOLS_FL_RIGHT : 0))
                        return -ENOMEM;
        return 0;
}

static int add_line(struct libscols_table *table, const Field *fields, const json_object *row) {
        struct libscols_line *line = scols_table_new_line(table, NULL);

        if (!line)
                return -ENOMEM;
        for (size_t i = 0; fields[i].key; i++) {
                _cleanup_free_ char *text = format_field(fields + i, row);
                const char *color;

                if (!text)
                        return -ENOMEM;
                color = field_color(fields[i].kind, text);
                if (scols_line_set_data(line, i, streq(text, "") ? UNKNOWN : text) < 0)
                        return -ENOMEM;
                if (color && scols_cell_set_color(scols_line_get_cell(line, i), color) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int output_table(Output *output, const Field *fields, json_object *rows, const char *noun) {
        _cleanup_(scols_tablep) struct libscols_table *table = scols_new_table();
        size_t n = json_object_array_length(rows);
        int r;

        if (!table)
                return -ENOMEM;
        /* format_field() did it, and names of units have backslashes of their own. */
        (void) scols_table_enable_noencoding(table, true);
        (void) scols_table_enable_colors(table, output->colors);
        (void) scols_table_enable_noheadings(table, !output->legend);
        r = add_columns(table, fields);
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = add_line(table, fields, json_object_array_get_idx(rows, i));
        if (r < 0)
                return r;

        begin(output);
        if (n > 0 && scols_print_table(table) < 0)
                return -ENOMEM;
        if (output->legend)
                (void) printf("%s%zu %s%s.\n", n > 0 ? "\n" : "", n, noun, n == 1 ? "" : "s");
        return 0;
}

static int sheet_width(const Field *fields) {
        size_t width = 0;

        for (; fields->key; fields++)
                if (strlen(fields->title) > width)
                        width = strlen(fields->title);
        return (int) width + 2;
}

/* A line of a field that takes several: only the first has the title. */
static void print_title(int width, const char **title) {
        (void) printf("%*s%s ", width, *title, **title != '\0' ? ":" : " ");
        *title = "";
}

static void print_counters(int width, const char *title, json_object *counters) {
        json_object_object_foreach(counters, name, value) {
                _cleanup_free_ char *text = text_escape(name);

                print_title(width, &title);
                (void) printf("%-10s %s\n", text ?: "",
                              value ? json_object_get_string(value) : UNKNOWN);
        }
}

static void print_lines(int width, const char *title, json_object *lines) {
        for (size_t i = 0; i < json_object_array_length(lines); i++) {
                const char *line = json_object_get_string(json_object_array_get_idx(lines, i));
                _cleanup_free_ char *text = text_escape(line ?: "");

                print_title(width, &title);
                (void) printf("%s\n", text ?: "");
        }
}

static int print_text(const Output *output, int width, const Field *field,
                      const json_object *object) {
        _cleanup_free_ char *text = format_field(field, object);
        const char *color;

        if (!text)
                return -ENOMEM;
        if (streq(text, ""))
                return 0;
        color = output->colors ? field_color(field->kind, text) : NULL;
        (void) printf("%*s: %s%s%s\n", width, field->title, color ?: "", text,
                      color ? COLOR_END : "");
        return 0;
}

static int print_field(const Output *output, int width, const Field *field,
                       const json_object *object) {
        json_object *value = NULL;

        (void) json_object_object_get_ex(object, field->key, &value);
        if (field->kind == FIELD_COUNTERS && json_object_is_type(value, json_type_object))
                print_counters(width, field->title, value);
        else if (field->kind == FIELD_LINES && json_object_is_type(value, json_type_array))
                print_lines(width, field->title, value);
        else
                return print_text(output, width, field, object);
        return 0;
}

int output_sheet(Output *output, const char *title, const Field *fields,
                 const json_object *object) {
        _cleanup_free_ char *escaped = text_escape(title);
        int width = sheet_width(fields);

        if (!escaped)
                return -ENOMEM;
        begin(output);
        (void) printf("%s%s%s%s\n", output->separate ? "\n" : "", output->colors ? COLOR_TITLE : "",
                      escaped, output->colors ? COLOR_END : "");
        output->separate = true;
        for (; fields->key; fields++) {
                int r = print_field(output, width, fields, object);

                if (r < 0)
                        return r;
        }
        return 0;
}
