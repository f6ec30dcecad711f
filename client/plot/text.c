/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Pictures for a terminal: columns of blocks, an eighth of a line high, or of ASCII. The scale of
 * the windows is logarithmic, too: the few that took long are what one looks for, and next to a
 * million others they would not be seen. A column that has any has at least an eighth.
 */

#include "plot/text.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "base/duration.h"
#include "top/cell.h"

#define HEIGHT      10
#define TIME_HEIGHT 5
#define MARGIN      7 /* numbers, and the axis */
#define WIDTH_MIN   20
#define LABEL_MAX   64
#define EIGHTHS     8

#define COLOR_TITLE   "\x1b[1m"
#define COLOR_BAD     "\x1b[31m"
#define COLOR_PROBLEM "\x1b[33m"
#define COLOR_END     "\x1b[0m"

typedef struct Columns {
        const TextStyle *style;
        double *levels; /* of each column, 0 to 1 */
        size_t n;
        size_t height;
        size_t bad;     /* the first column beyond the budget */
        bool has_limit; /* and there is one */
        const char *color;
} Columns;

static const char *block(const TextStyle *style, unsigned eighths) {
        static const char *const blocks[] = {
                " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588",
        };

        if (style->utf8)
                return blocks[eighths];
        return eighths == 0 ? " " : eighths <= 2 ? "." : eighths <= 5 ? ":" : "#";
}

/* What of a column is in a line, counted from below. */
static unsigned fill_of(double level, size_t height, size_t line) {
        double eighths = level * (double) height * EIGHTHS;
        double rest;

        if (level > 0 && eighths < 1)
                eighths = 1;
        rest = floor(eighths + 0.5) - (double) (line * EIGHTHS);
        return rest <= 0 ? 0 : rest >= EIGHTHS ? EIGHTHS : (unsigned) rest;
}

/* The place of the budget, where nothing else is. */
static const char *limit_of(const TextStyle *style) {
        return style->utf8 ? "\u250a" : "|";
}

static void write_line(const Columns *columns, size_t line, const char *label, FILE *f) {
        const TextStyle *style = columns->style;
        const char *color = "";

        (void) fprintf(f, "%*s %s", MARGIN - 2, label, style->utf8 ? "\u2502" : "|");
        for (size_t i = 0; i < columns->n; i++) {
                unsigned fill = fill_of(columns->levels[i], columns->height, line);
                bool is_limit = columns->has_limit && i == columns->bad && fill == 0;
                const char *wanted = !style->colors     ? ""
                                     : is_limit         ? COLOR_BAD
                                     : fill == 0        ? ""
                                     : i > columns->bad ? COLOR_BAD
                                                        : columns->color;

                if (!streq(color, wanted))
                        (void) fprintf(f, "%s%s", *color != '\0' ? COLOR_END : "", wanted);
                color = wanted;
                (void) fputs(is_limit ? limit_of(style) : block(style, fill), f);
        }
        (void) fprintf(f, "%s\n", *color != '\0' ? COLOR_END : "");
}

static void write_axis(const Columns *columns, FILE *f) {
        (void) fprintf(f, "%*s %s", MARGIN - 2, "0", columns->style->utf8 ? "\u2514" : "+");
        for (size_t i = 0; i < columns->n; i++)
                (void) fputs(columns->style->utf8 ? "\u2500" : "-", f);
        (void) fputc('\n', f);
}

/* Puts ASCII text into a line of spaces, if there is room for it and a space on both sides. */
static bool place_text(char *line, size_t n, size_t at, const char *text) {
        size_t length = strlen(text), from = at > 0 ? at - 1 : 0;

        if (at + length > n)
                return false;
        for (size_t i = from; i < n && i < at + length + 1; i++)
                if (line[i] != ' ')
                        return false;
        for (size_t i = 0; i < length; i++)
                line[at + i] = text[i];
        return true;
}

static char *make_line(size_t n) {
        char *line = malloc(n + 1);

        if (line) {
                memset(line, ' ', n);
                line[n] = '\0';
        }
        return line;
}

/* Without the spaces at its end; '^' stands for an arrow. */
static void print_line(const TextStyle *style, const char *line, FILE *f) {
        size_t n = strlen(line);

        while (n > 0 && line[n - 1] == ' ')
                n--;
        (void) fprintf(f, "%*s", MARGIN, "");
        for (size_t i = 0; i < n; i++)
                if (line[i] == '^' && style->utf8)
                        (void) fputs("\u2191", f);
                else
                        (void) fputc(line[i], f);
        (void) fputc('\n', f);
}

static size_t column_of(const Scale *scale, size_t n, uint64_t ns) {
        double place = scale_place(scale, ns) * (double) n;

        return place < 0 ? 0 : place >= (double) n ? n - 1 : (size_t) place;
}

static int write_ticks(const TextStyle *style, const Scale *scale, size_t n, FILE *f) {
        _cleanup_free_ char *line = make_line(n);

        if (!line)
                return -ENOMEM;
        for (uint64_t ns = scale_next_tick(scale, 0); ns > 0; ns = scale_next_tick(scale, ns + 1)) {
                char text[TICK_MAX];

                (void) place_text(line, n, column_of(scale, n, ns), tick_format(ns, text));
        }
        print_line(style, line, f);
        return 0;
}

/* "^ p99 4.1ms", or "p99 4.1ms ^" where there is no room to the right. */
static bool place_mark(char *line, size_t n, size_t at, const char *name, const char *length) {
        char text[LABEL_MAX + DURATION_MAX];
        size_t columns;

        (void) snprintf(text, sizeof(text), "^ %.20s %s", name, length);
        columns = strlen(text);
        if (at + columns <= n)
                return place_text(line, n, at, text);
        (void) snprintf(text, sizeof(text), "%.20s %s ^", name, length);
        return columns <= at + 1 && place_text(line, n, at + 1 - columns, text);
}

static bool put_mark(const Plot *plot, const Scale *scale, const PlotMark *mark, char *line,
                     size_t n) {
        char length[DURATION_MAX];

        /* The budget as it was written. */
        if (mark->ns == plot->budget_ns)
                (void) duration_format(mark->ns, length);
        else
                (void) duration_format_short(mark->ns, length);
        return place_mark(line, n, column_of(scale, n, mark->ns), mark->name, length);
}

/* Each mark on the first line that has room for it. */
static int write_marks(const Plot *plot, const TextStyle *style, const Scale *scale, size_t n,
                       FILE *f) {
        bool done[PLOT_MARKS_MAX] = {};

        for (size_t left = plot->n_marks, before = left + 1; left > 0 && left < before;) {
                _cleanup_free_ char *line = make_line(n);

                if (!line)
                        return -ENOMEM;
                before = left;
                for (size_t i = 0; i < plot->n_marks; i++)
                        if (!done[i] && put_mark(plot, scale, plot->marks + i, line, n)) {
                                done[i] = true;
                                left--;
                        }
                if (left < before)
                        print_line(style, line, f);
        }
        return 0;
}

/* The power of ten that is as high as a line; on the last one what it stands for; or "". */
static void label_line(size_t line, double most, char buf[static CELL_MAX]) {
        uint64_t label = line == HEIGHT - 1 ? (uint64_t) most : 0;

        for (uint64_t ten = 1; ten <= TEN_MAX && (double) ten <= most; ten *= 10) {
                double level = log10(1 + (double) ten) / log10(1 + most) * HEIGHT;

                if (label == 0 && level > (double) line && level <= (double) (line + 1))
                        label = ten;
        }
        buf[0] = '\0';
        if (label >= 1000)
                (void) cell_rate((double) label, buf);
        else if (label > 0)
                (void) snprintf(buf, CELL_MAX, "%" PRIu64, label);
}

static int write_lengths(const Plot *plot, const TextStyle *style, size_t n, FILE *f) {
        _cleanup_free_ double *levels = calloc(n, sizeof(*levels));
        Scale scale = scale_make(plot);
        Columns columns = {
                .style = style, .levels = levels, .n = n, .height = HEIGHT, .bad = n, .color = ""
        };
        double most = 1;
        int r;

        if (!levels)
                return -ENOMEM;
        plot_divide_lengths(plot, &scale, n, levels);
        for (size_t i = 0; i < n; i++)
                most = levels[i] > most ? levels[i] : most;
        for (size_t i = 0; i < n; i++)
                levels[i] = log10(1 + levels[i]) / log10(1 + most);
        if (plot->budget_ns != UINT64_MAX) {
                columns.bad = column_of(&scale, n, plot->budget_ns);
                columns.has_limit = true;
        }
        for (size_t line = HEIGHT; line-- > 0;) {
                char label[CELL_MAX];

                label_line(line, most, label);
                write_line(&columns, line, label, f);
        }
        write_axis(&columns, f);
        r = write_ticks(style, &scale, n, f);
        return r < 0 ? r : write_marks(plot, style, &scale, n, f);
}

static void format_time(uint64_t usec, char buf[static LABEL_MAX]) {
        time_t seconds = (time_t) (usec / 1000000);
        struct tm tm;

        if (!localtime_r(&seconds, &tm) || strftime(buf, LABEL_MAX, "%b %d %H:%M:%S", &tm) == 0)
                (void) strcpy(buf, "-");
}

static int write_times(const Plot *plot, const TextStyle *style, size_t n, FILE *f) {
        _cleanup_free_ char *line = make_line(n);
        char text[LABEL_MAX];

        if (!line)
                return -ENOMEM;
        format_time(plot->since_usec, text);
        (void) place_text(line, n, 0, text);
        format_time(plot->until_usec, text);
        if (strlen(text) <= n)
                (void) place_text(line, n, n - strlen(text), text);
        print_line(style, line, f);
        return 0;
}

static int write_events(const Plot *plot, const TextStyle *style, size_t n, FILE *f) {
        _cleanup_free_ uint64_t *counts = calloc(n, sizeof(*counts));
        _cleanup_free_ double *levels = calloc(n, sizeof(*levels));
        Columns columns = { .style = style,
                            .levels = levels,
                            .n = n,
                            .height = TIME_HEIGHT,
                            .bad = n,
                            .color = COLOR_PROBLEM };
        uint64_t most = 1;

        if (!counts || !levels)
                return -ENOMEM;
        plot_divide_time(plot, n, counts);
        for (size_t i = 0; i < n; i++)
                most = counts[i] > most ? counts[i] : most;
        for (size_t i = 0; i < n; i++)
                levels[i] = (double) counts[i] / (double) most;
        for (size_t line = TIME_HEIGHT; line-- > 0;) {
                char label[CELL_MAX] = "";

                if (line == TIME_HEIGHT - 1 && most >= 1000)
                        (void) cell_rate((double) most, label);
                else if (line == TIME_HEIGHT - 1)
                        (void) snprintf(label, sizeof(label), "%" PRIu64, most);
                write_line(&columns, line, label, f);
        }
        write_axis(&columns, f);
        return write_times(plot, style, n, f);
}

/* A title, cut to the width. */
static int write_title(const Plot *plot, const TextStyle *style, const char *rest, FILE *f) {
        size_t room = style->width > cell_width(rest) ? style->width - cell_width(rest) : 1;
        _cleanup_free_ char *name = cell_fit(plot->name, room, style->utf8);

        if (!name)
                return -ENOMEM;
        (void) fprintf(f, "%s%s%s%s\n", style->colors ? COLOR_TITLE : "", name, rest,
                       style->colors ? COLOR_END : "");
        return 0;
}

static const char *plural(uint64_t n) {
        return n == 1 ? "" : "s";
}

int plot_write_text(const Plot *plot, const TextStyle *style, FILE *f) {
        size_t n = style->width > MARGIN + WIDTH_MIN ? style->width - MARGIN - 1 : WIDTH_MIN;
        uint64_t windows = plot_count_windows(plot), events = plot_count_events(plot);
        char rest[LABEL_MAX];
        int r;

        if (windows > 0)
                (void) snprintf(rest, sizeof(rest), ": %" PRIu64 " window%s", windows,
                                plural(windows));
        else
                (void) snprintf(rest, sizeof(rest), ": %s", plot_without_windows(plot));
        r = write_title(plot, style, rest, f);
        if (r >= 0 && windows > 0)
                r = write_lengths(plot, style, n, f);
        if (r < 0 || !plot->has_events)
                return r;
        (void) snprintf(rest, sizeof(rest), ": %" PRIu64 " violation%s in the journal", events,
                        plural(events));
        (void) fputc('\n', f);
        r = write_title(plot, style, rest, f);
        return r < 0 || events == 0 ? r : write_events(plot, style, n, f);
}
