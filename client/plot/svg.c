/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Pictures as SVG: the distribution of lengths, and below it, if there is a time, the violations by
 * time and length, darker where there are more. The file stands on its own: no script, no style
 * sheet and no font from elsewhere. Text is escaped twice: for people, as everywhere, and for XML.
 *
 * Numbers are printed in the C locale, which tlobctl has for numbers.
 */

#include "plot/svg.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "base/duration.h"
#include "base/sentence.h"

#define WIDTH       900
#define LEFT        70
#define RIGHT       20
#define INNER       (WIDTH - LEFT - RIGHT)
#define TITLE       36
#define BARS        220 /* height of the distribution */
#define MARKS       104 /* below it: ticks, and names of marks */
#define MARK_LINES  5
#define MARK_LINE   14.0
#define CHARACTER   6.8 /* about the width of one */
#define HEAT        200
#define HEAT_BELOW  46
#define CELLS       80 /* of the heat map, in time */
#define CELLS_UP    20
#define TICKS_APART 60
#define TIME_MAX    64

#define GRAY   "#6b7280"
#define GRID   "#e5e7eb"
#define BAR    "#3b82f6"
#define OVER   "#dc2626"
#define PURPLE "#7c3aed"

static const struct {
        char character;
        const char *entity;
} entities[] = {
        { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" }, { '\'', "&#39;" },
};

char *xml_escape(const char *text) {
        _cleanup_free_ char *printable = text_escape(text);
        char *escaped = NULL;
        size_t size = 0;
        FILE *f = printable ? open_memstream(&escaped, &size) : NULL;

        if (!f)
                return NULL;
        for (const char *c = printable; *c != '\0'; c++) {
                size_t i = 0;

                while (i < ELEMENTSOF(entities) && entities[i].character != *c)
                        i++;
                if (i < ELEMENTSOF(entities))
                        (void) fputs(entities[i].entity, f);
                else
                        (void) fputc(*c, f);
        }
        if (fclose(f) != 0) {
                free(escaped);
                return NULL;
        }
        return escaped;
}

/* Without windows, there is only the title. */
static double height_of_lengths(const Plot *plot) {
        if (plot->without_lengths)
                return 0;
        return plot_count_windows(plot) > 0 ? TITLE + BARS + MARKS : TITLE;
}

static double height_of(const Plot *plot) {
        double height = height_of_lengths(plot);

        return plot->has_events ? height + TITLE + HEAT + HEAT_BELOW : height;
}

/* The text is safe: a number, or escaped. */
static void put_text(FILE *f, double x, double y, const char *anchor, const char *color,
                     const char *text) {
        (void) fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n",
                       x, y, anchor, color, text);
}

static void put_line(FILE *f, double x1, double y1, double x2, double y2, const char *color,
                     const char *more) {
        (void) fprintf(f,
                       "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"%s/>\n",
                       x1, y1, x2, y2, color, more);
}

static int put_title(FILE *f, double y, const char *name, const char *rest) {
        _cleanup_free_ char *escaped = xml_escape(name);

        if (!escaped)
                return -ENOMEM;
        (void) fprintf(f,
                       "<text x=\"%d\" y=\"%.1f\" font-size=\"15\" font-weight=\"bold\" "
                       "fill=\"#111827\">%s<tspan dx=\"10\" font-weight=\"normal\" fill=\"" GRAY
                       "\">%s</tspan></text>\n",
                       LEFT, y, escaped, rest);
        return 0;
}

/* Logarithmic, so that the few that took long can be seen. */
static double level_of(uint64_t count, double most) {
        return log10(1 + (double) count) / log10(1 + most) * BARS;
}

static void put_counts(FILE *f, double top, double most) {
        for (uint64_t ten = 1; ten <= TEN_MAX && (double) ten <= most; ten *= 10) {
                double y = top + BARS - level_of(ten, most);
                char text[32];

                put_line(f, LEFT, y, LEFT + INNER, y, GRID, "");
                (void) snprintf(text, sizeof(text), "%" PRIu64, ten);
                put_text(f, LEFT - 8, y + 4, "end", GRAY, text);
        }
}

static void put_bars(const Plot *plot, const Scale *scale, double top, double most, FILE *f) {
        for (size_t i = 0; i < plot->n_lengths; i++) {
                const HistogramBucket *bucket = plot->lengths + i;
                double height = level_of(bucket->count, most), x, width;
                char from[DURATION_MAX], to[DURATION_MAX];
                uint64_t low, high;

                bucket_bounds(bucket, plot->max_ns, &low, &high);
                x = scale_place(scale, low) * INNER;
                width = scale_place(scale, high) * INNER - x;
                (void) fprintf(f,
                               "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                               "fill=\"%s\"><title>%s to %s: %" PRIu64 "</title></rect>\n",
                               LEFT + x, top + BARS - height, width > 0.8 ? width : 0.8, height,
                               low >= plot->budget_ns ? OVER : BAR,
                               duration_format_short(low, from), duration_format_short(high, to),
                               bucket->count);
        }
}

static void put_ticks(const Scale *scale, double bottom, FILE *f) {
        double last = -TICKS_APART;

        for (uint64_t ns = scale_next_tick(scale, 0); ns > 0; ns = scale_next_tick(scale, ns + 1)) {
                double x = scale_place(scale, ns) * INNER;
                char text[TICK_MAX];

                put_line(f, LEFT + x, bottom, LEFT + x, bottom + 5, GRAY, "");
                if (x - last < TICKS_APART)
                        continue;
                last = x;
                put_text(f, LEFT + x, bottom + 18, "middle", GRAY, tick_format(ns, text));
        }
}

/* The first line below the scale on which a name has room; ends has where those before end. */
static size_t choose_line(double *ends, double from, double width) {
        size_t i = 0;

        while (i < MARK_LINES - 1 && ends[i] > from)
                i++;
        ends[i] = from + width;
        return i;
}

/* From left to right, as they are. What is far to the right has its name to the left. */
static int put_mark(const Scale *scale, const PlotMark *mark, double top, double *ends, FILE *f) {
        double x = LEFT + scale_place(scale, mark->ns) * INNER, width, below;
        bool is_budget = streq(mark->name, "budget"), is_last;
        _cleanup_free_ char *name = xml_escape(mark->name);
        char length[DURATION_MAX], text[2 * DURATION_MAX];
        const char *color = is_budget ? OVER : PURPLE;

        if (!name)
                return -ENOMEM;
        (void) snprintf(text, sizeof(text), "%.20s %s", name,
                        is_budget ? duration_format(mark->ns, length)
                                  : duration_format_short(mark->ns, length));
        width = (double) strlen(text) * CHARACTER + 8;
        is_last = x + width > LEFT + INNER;
        below = top + BARS + 32 +
                MARK_LINE * (double) choose_line(ends, is_last ? x - width : x, width);
        put_line(f, x, top, x, below, color,
                 is_budget ? " stroke-width=\"1.5\"" : " stroke-dasharray=\"3 3\"");
        put_text(f, is_last ? x - 4 : x + 4, below, is_last ? "end" : "start", color, text);
        return 0;
}

static int put_marks(const Plot *plot, const Scale *scale, double top, FILE *f) {
        double ends[MARK_LINES] = {};
        bool done[PLOT_MARKS_MAX] = {};
        int r = 0;

        for (size_t n = 0; r >= 0 && n < plot->n_marks; n++) {
                size_t first = SIZE_MAX;

                for (size_t i = 0; i < plot->n_marks; i++)
                        if (!done[i] &&
                            (first == SIZE_MAX || plot->marks[i].ns < plot->marks[first].ns))
                                first = i;
                done[first] = true;
                r = put_mark(scale, plot->marks + first, top, ends, f);
        }
        return r;
}

static int put_lengths(const Plot *plot, double top, FILE *f) {
        uint64_t windows = plot_count_windows(plot);
        Scale scale = scale_make(plot);
        char rest[64];
        double most = 1;
        int r;

        (void) snprintf(rest, sizeof(rest), "%" PRIu64 " window%s, by length", windows,
                        windows == 1 ? "" : "s");
        r = put_title(f, top + 22, plot->name, windows > 0 ? rest : plot_without_windows(plot));
        if (r < 0 || windows == 0)
                return r;
        top += TITLE;
        for (size_t i = 0; i < plot->n_lengths; i++)
                if ((double) plot->lengths[i].count > most)
                        most = (double) plot->lengths[i].count;
        put_counts(f, top, most);
        put_bars(plot, &scale, top, most, f);
        put_line(f, LEFT, top + BARS, LEFT + INNER, top + BARS, GRAY, "");
        put_ticks(&scale, top + BARS, f);
        return put_marks(plot, &scale, top, f);
}

/* How many violations there are in each cell, and in the fullest. */
static uint64_t fill_cells(const Plot *plot, const Scale *scale, uint64_t *cells) {
        double span = plot->until_usec > plot->since_usec
                              ? (double) (plot->until_usec - plot->since_usec)
                              : 1;
        uint64_t most = 0;

        for (size_t i = 0; i < plot->n_events; i++) {
                const PlotEvent *event = plot->events + i;
                double x = ((double) event->time_usec - (double) plot->since_usec) / span * CELLS;
                double y = scale_place(scale, event->length_ns) * CELLS_UP;
                size_t column = x < 0 ? 0 : x >= CELLS ? CELLS - 1 : (size_t) x, row;
                uint64_t *cell;

                if (event->length_ns == UINT64_MAX)
                        continue;
                row = y < 0 ? 0 : y >= CELLS_UP ? CELLS_UP - 1 : (size_t) y;
                cell = cells + row * CELLS + column;
                *cell += event->count;
                if (*cell > most)
                        most = *cell;
        }
        return most;
}

static void put_cells(const uint64_t *cells, uint64_t most, double top, FILE *f) {
        const double width = (double) INNER / CELLS, height = (double) HEAT / CELLS_UP;

        for (size_t row = 0; row < CELLS_UP; row++)
                for (size_t column = 0; column < CELLS; column++) {
                        uint64_t n = cells[row * CELLS + column];

                        if (n == 0)
                                continue;
                        (void) fprintf(f,
                                       "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
                                       "height=\"%.2f\" fill=\"" OVER "\" fill-opacity=\"%.2f\">"
                                       "<title>%" PRIu64 "</title></rect>\n",
                                       LEFT + (double) column * width,
                                       top + HEAT - (double) (row + 1) * height, width, height,
                                       0.25 + 0.75 * log1p((double) n) / log1p((double) most), n);
                }
}

static void put_length_ticks(const Scale *scale, double top, FILE *f) {
        for (uint64_t ns = scale_next_tick(scale, 0); ns > 0; ns = scale_next_tick(scale, ns + 1)) {
                double y = top + HEAT - scale_place(scale, ns) * HEAT;
                char text[TICK_MAX];

                put_line(f, LEFT, y, LEFT + INNER, y, GRID, "");
                put_text(f, LEFT - 8, y + 4, "end", GRAY, tick_format(ns, text));
        }
}

static void put_times(const Plot *plot, double bottom, FILE *f) {
        for (unsigned i = 0; i <= 4; i++) {
                uint64_t usec = plot->since_usec + (plot->until_usec - plot->since_usec) / 4 * i;
                time_t seconds = (time_t) (usec / 1000000);
                double x = LEFT + (double) INNER * i / 4;
                char text[TIME_MAX];
                struct tm tm;

                if (!localtime_r(&seconds, &tm) ||
                    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) == 0)
                        continue;
                put_line(f, x, bottom, x, bottom + 5, GRAY, "");
                put_text(f, x, bottom + 18,
                         i == 0   ? "start"
                         : i == 4 ? "end"
                                  : "middle",
                         GRAY, text);
        }
}

static int put_events(const Plot *plot, double top, FILE *f) {
        /* Only violations: the windows in the budget would leave them no room. */
        const Plot violations = { .events = plot->events,
                                  .n_events = plot->n_events,
                                  .budget_ns = plot->budget_ns,
                                  .since_usec = plot->since_usec,
                                  .until_usec = plot->until_usec };
        _cleanup_free_ uint64_t *cells = calloc((size_t) CELLS * CELLS_UP, sizeof(*cells));
        Scale scale = scale_make(&violations);
        uint64_t n = plot_count_events(plot), most;
        char rest[64];
        int r;

        if (!cells)
                return -ENOMEM;
        (void) snprintf(rest, sizeof(rest), "%" PRIu64 " violation%s, by time and length", n,
                        n == 1 ? "" : "s");
        r = put_title(f, top + 22, plot->name, rest);
        if (r < 0)
                return r;
        top += TITLE;
        most = fill_cells(&violations, &scale, cells);
        put_length_ticks(&scale, top, f);
        put_cells(cells, most, top, f);
        if (plot->budget_ns != UINT64_MAX) {
                double y = top + HEAT - scale_place(&scale, plot->budget_ns) * HEAT;

                put_line(f, LEFT, y, LEFT + INNER, y, OVER, " stroke-width=\"1.5\"");
        }
        put_line(f, LEFT, top + HEAT, LEFT + INNER, top + HEAT, GRAY, "");
        put_times(plot, top + HEAT, f);
        return 0;
}

int plot_write_svg(const Plot *plots, size_t n, FILE *f) {
        double height = 0, top = 0;
        int r = 0;

        for (size_t i = 0; i < n; i++)
                height += height_of(plots + i);
        (void) fprintf(f,
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" "
                       "width=\"%d\" height=\"%.0f\" font-family=\"sans-serif\" "
                       "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
                       "fill=\"#ffffff\"/>\n",
                       WIDTH, height, WIDTH, height);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                if (!plots[i].without_lengths)
                        r = put_lengths(plots + i, top, f);
                if (r >= 0 && plots[i].has_events)
                        r = put_events(plots + i, top + height_of_lengths(plots + i), f);
                top += height_of(plots + i);
        }
        (void) fputs("</svg>\n", f);
        return r;
}
