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

#include <assert.h>
#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>
#include <sys/ioctl.h>

#include "base/duration.h"
#include "base/sentence.h"
#include "bus-json.h"
#include "json-name.h"
#include "wrap.h"

#define COLOR_GOOD    "\x1b[32m"
#define COLOR_BAD     "\x1b[1;31m"
#define COLOR_PROBLEM "\x1b[33m"
#define COLOR_TITLE   "\x1b[1m"
#define COLOR_END     "\x1b[0m"

#define UNKNOWN    "-"
#define FIELDS_MAX 16 /* columns of a table */
#define WIDTH_MIN  8  /* of a column that takes several lines */

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

static unsigned terminal_width(void) {
        struct winsize screen;

        return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &screen) >= 0
                       ? screen.ws_col
                       : 0;
}

/* What cannot be written is then mostly known at the end, with the reason. */
static void enlarge_buffer(void) {
        static char buffer[1 << 16];

        if (!isatty(STDOUT_FILENO))
                (void) setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
}

void output_init(Output *output, const Options *options) {
        enlarge_buffer();
        *output = (Output) {
                .json = options->json,
                .legend = options->legend,
                .colors = colors_wanted(),
                .width = terminal_width(),
                .pager_wanted = options->pager,
        };
}

int output_flush(Output *output) {
        bool has_failed = ferror(stdout);

        if (output->error < 0 || output->pager.open)
                return output->error;
        if (has_failed)
                output->error = -EIO;
        else if (fflush(stdout) != 0)
                output->error = -errno;
        return output->error;
}

int output_done(Output *output) {
        return output->pager.open ? pager_close(&output->pager) : output_flush(output);
}

void output_begin(Output *output) {
        if (output->pager_wanted)
                pager_open(&output->pager);
}

int output_json(Output *output, json_object *value) {
        _cleanup_json_ json_object *renamed = json_rename(value);
        int flags = JSON_C_TO_STRING_NOSLASHESCAPE;
        const char *text;

        flags |= output->json == JSON_PRETTY ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
                                             : JSON_C_TO_STRING_PLAIN;
        /* NULL is null, too. */
        text = renamed || !value ? json_object_to_json_string_ext(renamed, flags) : NULL;
        if (!text)
                return -ENOMEM;
        output_begin(output);
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
        return kind == FIELD_RIGHT || kind == FIELD_COUNT || kind == FIELD_PROBLEM ||
               kind == FIELD_DURATION || kind == FIELD_BUDGET || kind == FIELD_OFFSET;
}

/* Is there anything to show in a column? */
static bool is_used(const Field *field, json_object *rows) {
        if (field->kind != FIELD_OPTIONAL)
                return true;
        for (size_t i = 0; i < json_object_array_length(rows); i++)
                if (*json_string(json_object_array_get_idx(rows, i), field->key) != '\0')
                        return true;
        return false;
}

/* The columns of a table that are shown, as wide as what is in them. */
typedef struct Columns {
        const Field *fields[FIELDS_MAX];
        size_t widths[FIELDS_MAX], least[FIELDS_MAX];
        bool narrowed[FIELDS_MAX];
        size_t n;
} Columns;

static int measure_columns(Columns *columns, const Field *fields, json_object *rows) {
        for (; fields->key; fields++) {
                size_t width = strlen(fields->title);

                if (!is_used(fields, rows))
                        continue;
                for (size_t i = 0; i < json_object_array_length(rows); i++) {
                        _cleanup_free_ char *text =
                                format_field(fields, json_object_array_get_idx(rows, i));

                        if (!text)
                                return -ENOMEM;
                        if (strlen(text) > width)
                                width = strlen(text);
                }
                assert(columns->n < FIELDS_MAX);
                columns->fields[columns->n] = fields;
                columns->least[columns->n] =
                        strlen(fields->title) > WIDTH_MIN ? strlen(fields->title) : WIDTH_MIN;
                columns->widths[columns->n++] = width;
        }
        return 0;
}

/* Takes from the widest of those that can take several lines, until all fit. */
static void narrow_columns(Columns *columns, size_t width) {
        for (;;) {
                size_t sum = 0, widest = SIZE_MAX;

                for (size_t i = 0; i < columns->n; i++) {
                        FieldKind kind = columns->fields[i]->kind;

                        sum += columns->widths[i] + (i > 0);
                        if ((kind == FIELD_WRAPPED || kind == FIELD_OPTIONAL) &&
                            columns->widths[i] > columns->least[i] &&
                            (widest == SIZE_MAX || columns->widths[i] > columns->widths[widest]))
                                widest = i;
                }
                if (sum <= width || widest == SIZE_MAX)
                        return;
                columns->widths[widest]--;
                columns->narrowed[widest] = true;
        }
}

static int add_column(struct libscols_table *table, const Columns *columns, size_t i) {
        bool is_right = is_right_aligned(columns->fields[i]->kind);
        struct libscols_column *column;
        int flags = is_right ? SCOLS_FL_RIGHT : columns->narrowed[i] ? SCOLS_FL_WRAP : 0;

        column = scols_table_new_column(table, columns->fields[i]->title, 0, flags);
        if (!column)
                return -ENOMEM;
        /* add_cell() says where lines end. */
        return columns->narrowed[i] ? scols_column_set_wrapfunc(column, scols_wrapnl_chunksize,
                                                                scols_wrapnl_nextchunk, NULL)
                                    : 0;
}

static int add_cell(struct libscols_line *line, size_t i, const Columns *columns,
                    const json_object *row) {
        const Field *field = columns->fields[i];
        _cleanup_free_ char *text = format_field(field, row), *lines = NULL;
        const char *color;

        if (!text)
                return -ENOMEM;
        color = field_color(field->kind, text);
        if (columns->narrowed[i]) {
                lines = text_wrap(text, columns->widths[i]);
                if (!lines)
                        return -ENOMEM;
        }
        if (scols_line_set_data(line, i, streq(text, "") ? UNKNOWN : lines ?: text) < 0)
                return -ENOMEM;
        if (color && scols_cell_set_color(scols_line_get_cell(line, i), color) < 0)
                return -ENOMEM;
        return 0;
}

static int fill_table(struct libscols_table *table, const Columns *columns, json_object *rows) {
        int r = 0;

        for (size_t i = 0; i < columns->n && r >= 0; i++)
                r = add_column(table, columns, i);
        for (size_t i = 0; i < json_object_array_length(rows) && r >= 0; i++) {
                struct libscols_line *line = scols_table_new_line(table, NULL);

                r = line ? 0 : -ENOMEM;
                for (size_t k = 0; k < columns->n && r >= 0; k++)
                        r = add_cell(line, k, columns, json_object_array_get_idx(rows, i));
        }
        return r;
}

/* The library cannot know it: what it writes to may not be the terminal yet. */
static void limit_width(struct libscols_table *table, unsigned width) {
        if (width == 0)
                return;
        (void) scols_table_set_termforce(table, SCOLS_TERMFORCE_ALWAYS);
        (void) scols_table_set_termwidth(table, width);
}

int output_table(Output *output, const Field *fields, json_object *rows, const char *noun) {
        _cleanup_(scols_tablep) struct libscols_table *table = scols_new_table();
        size_t n = json_object_array_length(rows);
        Columns columns = {};
        int r;

        if (!table)
                return -ENOMEM;
        /* format_field() did it, and names of units have backslashes of their own. */
        (void) scols_table_enable_noencoding(table, true);
        (void) scols_table_enable_colors(table, output->colors);
        (void) scols_table_enable_noheadings(table, !output->legend);
        limit_width(table, output->width);
        r = measure_columns(&columns, fields, rows);
        if (r >= 0 && output->width > 0)
                narrow_columns(&columns, output->width);
        if (r >= 0)
                r = fill_table(table, &columns, rows);
        if (r < 0)
                return r;

        output_begin(output);
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

static void print_counters(int width, const char *title, json_object *counters, bool with_zeros) {
        json_object_object_foreach(counters, name, value) {
                _cleanup_free_ char *text = text_escape(name), *number = NULL;

                if (!with_zeros && json_object_get_uint64(value) == 0)
                        continue;
                number = text_escape(value ? json_object_get_string(value) : UNKNOWN);
                print_title(width, &title);
                (void) printf("%-10s %s\n", text ?: "", number ?: "");
        }
}

/*
 * The bytes of a line that has room for so many columns: it ends at a space, but words stay whole.
 */
static size_t measure_line(const char *text, size_t room) {
        size_t columns = 0, end = 0, i;

        for (i = 0; text[i] != '\0'; i++) {
                if (text[i] == ' ')
                        end = i;
                columns += (text[i] & 0xc0) != 0x80;
                if (columns > room && end > 0)
                        return end;
        }
        return i;
}

/*
 * Behind a title of that width: on a terminal, lines that are too long for it go on below their
 * beginning.
 */
static void print_wrapped(const Output *output, int width, const char *text) {
        size_t indent = (size_t) width + 2, room = SIZE_MAX;

        if (output->width >= indent + WIDTH_MIN)
                room = output->width - indent;
        for (;;) {
                size_t n = measure_line(text, room);

                (void) printf("%.*s", (int) n, text);
                text += n;
                text += strspn(text, " ");
                if (*text == '\0')
                        return;
                (void) printf("\n%*s", (int) indent, "");
        }
}

static void print_lines(const Output *output, int width, const char *title, json_object *lines) {
        for (size_t i = 0; i < json_object_array_length(lines); i++) {
                const char *line = json_object_get_string(json_object_array_get_idx(lines, i));
                _cleanup_free_ char *text = text_escape(line ?: "");

                print_title(width, &title);
                print_wrapped(output, width, text ?: "");
                (void) printf("\n");
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
        (void) printf("%*s: %s", width, field->title, color ?: "");
        print_wrapped(output, width, text);
        (void) printf("%s\n", color ? COLOR_END : "");
        return 0;
}

static int print_field(const Output *output, int width, const Field *field,
                       const json_object *object) {
        json_object *value = NULL;

        (void) json_object_object_get_ex(object, field->key, &value);
        if ((field->kind == FIELD_COUNTERS || field->kind == FIELD_LOSSES) &&
            json_object_is_type(value, json_type_object))
                print_counters(width, field->title, value, field->kind == FIELD_COUNTERS);
        else if (field->kind == FIELD_LINES && json_object_is_type(value, json_type_array))
                print_lines(output, width, field->title, value);
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
        output_begin(output);
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
