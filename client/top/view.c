/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a screen says, line by line. It only puts into words what rows.c has computed, and fits it
 * into the width and height that it is given: it knows no terminal. The names are as wide as there
 * is room, all other columns as wide as what can be in them, so that nothing moves from one screen
 * to the next. All text from elsewhere goes through cell_fit().
 */

#include "top/view.h"

#include <inttypes.h>

#include "base/duration.h"
#include "top/cell.h"

#define COLOR_GOOD    "\x1b[32m"
#define COLOR_BAD     "\x1b[1;31m"
#define COLOR_PROBLEM "\x1b[33m"
#define COLOR_TITLE   "\x1b[1m"
#define COLOR_HEAD    "\x1b[7m"
#define COLOR_END     "\x1b[0m"

#define WIDE      100 /* columns that are enough for the budget, too */
#define NAME_MIN  12
#define BAR       6
#define BAR_WIDE  16
#define STATE_MIN 5
#define OPEN_MIN  3 /* lines for open windows, if there are so many */

static const char *const key_help[] = {
        "v w 5 9 m c t n  sort by violations, windows, p50, p99, max, cost, state, name",
        "r                reverse the order",
        "u                units, or bindings",
        "+ -              more time between screens, or less",
        "space            look at once",
        "up down          scroll by a row; page up, page down by a screen",
        "h ?              this help; any key leaves it",
        "q                quit",
};

/* A bar of no width, and a column that it does not have, are left out. */
typedef struct Widths {
        size_t name, state, bar;
        bool has_budget, has_cpu, has_p50;
} Widths;

static const char *color(const View *view, const char *sequence) {
        return view->colors ? sequence : "";
}

/* A cell that fits, and the space that is left: before it, if it goes to the right. */
static void put(FILE *f, const char *text, size_t width, bool right) {
        size_t columns = cell_width(text), gap = columns < width ? width - columns : 0;

        (void) fprintf(f, "%*s%s%*s", right ? (int) gap : 0, "", text, right ? 0 : (int) gap, "");
}

static int put_text(const View *view, FILE *f, const char *text, size_t width) {
        _cleanup_free_ char *cell = cell_fit(text, width, view->utf8);

        if (!cell)
                return -ENOMEM;
        put(f, cell, width, false);
        return 0;
}

/* A whole line of plain text. */
static int put_line(const View *view, FILE *f, const char *sequence, const char *text) {
        _cleanup_free_ char *cell = cell_fit(text, view->width, view->utf8);

        if (!cell)
                return -ENOMEM;
        (void) fprintf(f, "%s%s%s\n", color(view, sequence), cell,
                       *sequence != '\0' ? color(view, COLOR_END) : "");
        return 0;
}

static size_t count_open(const View *view, const OpenWindows *windows) {
        size_t room = view->height / 4;

        if (view->height == 0)
                return windows->n;
        if (room < OPEN_MIN)
                room = OPEN_MIN;
        return windows->n < room ? windows->n : room;
}

size_t view_count_rows(const View *view, const OpenWindows *windows) {
        /* Two lines on everything, the titles, and what is below the rows. */
        size_t others = 2 + view->legend + (view->keys || view->message);

        if (view->height == 0)
                return SIZE_MAX;
        if (windows->n > 0)
                others += 2 + count_open(view, windows);
        return view->height > others ? view->height - others : 1;
}

static const char *row_name(const Row *row) {
        return *row->name != '\0' ? row->name : "(no unit)";
}

/* All columns but the name, each with a space before it. */
static size_t sum_columns(const Widths *widths) {
        return 1 + widths->state + (widths->has_budget ? 8 : 0) + 6 + 7 +
               (widths->has_p50 ? 7 : 0) + 7 + 7 + (widths->bar > 0 ? 1 + widths->bar : 0) +
               (widths->has_cpu ? 6 : 0);
}

/* The name gets what the others leave; those that can be missed go before it becomes too short. */
static void fit_columns(Widths *widths, size_t width) {
        if (width == 0)
                return;
        if (sum_columns(widths) + NAME_MIN > width)
                widths->bar = 0;
        if (sum_columns(widths) + NAME_MIN > width)
                widths->has_cpu = false;
        if (sum_columns(widths) + NAME_MIN > width)
                widths->has_p50 = false;
        if (sum_columns(widths) + widths->name > width)
                widths->name = width > sum_columns(widths) + NAME_MIN ? width - sum_columns(widths)
                                                                      : NAME_MIN;
}

static int measure(const View *view, const Rows *rows, Widths *ret) {
        Widths widths = {
                .name = NAME_MIN,
                .state = STATE_MIN,
                .bar = BAR,
                .has_cpu = true,
                .has_p50 = true,
        };

        for (size_t i = 0; i < rows->n; i++) {
                _cleanup_free_ char *name = cell_fit(row_name(rows->rows + i), 0, view->utf8);
                size_t state = cell_width(rows->rows[i].state);

                if (!name)
                        return -ENOMEM;
                if (cell_width(name) > widths.name)
                        widths.name = cell_width(name);
                if (state > widths.state)
                        widths.state = state;
        }
        if (view->width == 0 || view->width >= WIDE - 1) {
                widths.bar = BAR_WIDE;
                widths.has_budget = !view->order.by_unit;
        }
        fit_columns(&widths, view->width);
        *ret = widths;
        return 0;
}

static void put_number(FILE *f, const char *text, size_t width) {
        (void) fputc(' ', f);
        put(f, text, width, true);
}

static void write_head(const View *view, const Widths *widths, FILE *f) {
        (void) fprintf(f, "%s", color(view, COLOR_HEAD));
        put(f, view->order.by_unit ? "UNIT" : "BINDING", widths->name, false);
        (void) fputc(' ', f);
        put(f, "STATE", widths->state, false);
        if (widths->has_budget)
                put_number(f, "BUDGET", 7);
        put_number(f, "WIN/S", 5);
        put_number(f, "VIOL/S", 6);
        if (widths->has_p50)
                put_number(f, "P50", 6);
        put_number(f, "P99", 6);
        put_number(f, "MAX", 6);
        if (widths->bar > 0) {
                (void) fputc(' ', f);
                put(f, "TIME", widths->bar, false);
        }
        if (widths->has_cpu)
                put_number(f, "CPU", 5);
        (void) fprintf(f, "%s\n", color(view, COLOR_END));
}

static void put_bar(const View *view, FILE *f, const Row *row, size_t width) {
        enum tlob_state places[BAR_WIDE];

        cell_bar(row->share, width, places);
        (void) fputc(' ', f);
        for (size_t i = 0; i < width; i++)
                (void) fputs(cell_state(places[i], view->utf8), f);
}

static int put_state(const View *view, FILE *f, const char *state, size_t width) {
        const char *sequence = streq(state, "active")   ? COLOR_GOOD
                               : streq(state, "failed") ? COLOR_BAD
                                                        : "";
        int r;

        (void) fprintf(f, " %s", color(view, sequence));
        r = put_text(view, f, state, width);
        (void) fprintf(f, "%s", *sequence != '\0' ? color(view, COLOR_END) : "");
        return r;
}

static int write_row(const View *view, const Widths *widths, const Row *row, FILE *f) {
        bool is_violated = row->violations_per_sec > 0;
        char cell[CELL_MAX];
        int r;

        r = put_text(view, f, row_name(row), widths->name);
        if (r >= 0)
                r = put_state(view, f, row->state, widths->state);
        if (r < 0)
                return r;
        if (widths->has_budget)
                put_number(f, cell_budget(row->budget_ns, cell), 7);
        put_number(f, cell_rate(row->windows_per_sec, cell), 5);
        (void) fprintf(f, "%s", is_violated ? color(view, COLOR_PROBLEM) : "");
        put_number(f, cell_rate(row->violations_per_sec, cell), 6);
        (void) fprintf(f, "%s", is_violated ? color(view, COLOR_END) : "");
        if (widths->has_p50)
                put_number(f, cell_length(row->p50_ns, cell), 6);
        put_number(f, cell_length(row->p99_ns, cell), 6);
        put_number(f, cell_length(row->max_ns, cell), 6);
        if (widths->bar > 0)
                put_bar(view, f, row, widths->bar);
        if (widths->has_cpu)
                put_number(f, cell_cpu(row->cpu, cell), 5);
        (void) fputc('\n', f);
        return 0;
}

static int write_rows(const View *view, const Rows *rows, const OpenWindows *windows, FILE *f) {
        size_t room = view_count_rows(view, windows);
        Widths widths;
        int r;

        r = measure(view, rows, &widths);
        if (r < 0)
                return r;
        if (view->legend)
                write_head(view, &widths, f);
        for (size_t i = view->first; r >= 0 && i < rows->n && i - view->first < room; i++)
                r = write_row(view, &widths, rows->rows + i, f);
        return r;
}

/* "  12-30 of 56": which rows there is room for; "" if for all. NULL for want of memory. */
static char *describe_part(const View *view, const Rows *rows, const OpenWindows *windows) {
        size_t room = view_count_rows(view, windows), last;
        char *text;

        if (rows->n <= room || view->help)
                return strdup("");
        last = view->first + room < rows->n ? view->first + room : rows->n;
        return asprintf(&text, "  %zu-%zu of %zu", view->first + 1, last, rows->n) < 0 ? NULL
                                                                                       : text;
}

/* What is shown, of all, as far as there is room behind the rest of the line. */
static char *describe_filter(const View *view, size_t used) {
        _cleanup_free_ char *filter = NULL;
        char *text;

        if (*view->filter == '\0' || (view->width > 0 && view->width <= used + 5))
                return strdup("");
        filter = cell_fit(view->filter, view->width > 0 ? view->width - used - 5 : 0, view->utf8);
        return !filter || asprintf(&text, "  of %s", filter) < 0 ? NULL : text;
}

/* "top 22:51:07  last 1.0s  12 bindings, 10 active, 1 failed  1-8 of 12  of nginx" */
static int write_state(const View *view, const Rows *rows, const OpenWindows *windows, FILE *f) {
        _cleanup_free_ char *part = describe_part(view, rows, windows);
        _cleanup_free_ char *text = NULL, *filter = NULL, *line = NULL;
        char interval[DURATION_MAX], failed[CELL_MAX] = "";

        if (!part)
                return -ENOMEM;
        if (rows->n_failed > 0)
                (void) snprintf(failed, sizeof(failed), ", %zu failed", rows->n_failed);
        if (asprintf(&text, "top %s  %s%s  %zu binding%s, %zu active%s%s", view->time,
                     rows->interval_ns > 0 ? "last " : "first look",
                     rows->interval_ns > 0 ? duration_format_short(rows->interval_ns, interval)
                                           : "",
                     rows->n_bindings, rows->n_bindings == 1 ? "" : "s", rows->n_active, failed,
                     part) < 0)
                return -ENOMEM;
        filter = describe_filter(view, cell_width(text));
        if (!filter || asprintf(&line, "%s%s", text, filter) < 0)
                return -ENOMEM;
        return put_line(view, f, COLOR_TITLE, line);
}

static int write_sums(const View *view, const Rows *rows, FILE *f) {
        _cleanup_free_ char *text = NULL;
        char windows[CELL_MAX], violations[CELL_MAX];
        bool is_known = rows->interval_ns > 0;

        if (asprintf(&text,
                     "%s windows/s  %s violations/s  by %s%s  %s running %s waiting %s sleeping",
                     cell_rate(is_known ? rows->windows_per_sec : -1, windows),
                     cell_rate(is_known ? rows->violations_per_sec : -1, violations),
                     sort_key_to_string(view->order.key), view->order.reverse ? ", reversed" : "",
                     cell_state(TLOB_RUNNING, view->utf8), cell_state(TLOB_WAITING, view->utf8),
                     cell_state(TLOB_SLEEPING, view->utf8)) < 0)
                return -ENOMEM;
        return put_line(view, f, "", text);
}

/* The columns of open windows; what they do has the rest of the line. */
typedef struct OpenWidths {
        size_t binding, task;
} OpenWidths;

static int widen(size_t *width, const char *text, size_t most, bool utf8) {
        _cleanup_free_ char *cell = cell_fit(text, most, utf8);

        if (!cell)
                return -ENOMEM;
        if (cell_width(cell) > *width)
                *width = cell_width(cell);
        return 0;
}

static int measure_open(const View *view, const OpenWindows *windows, size_t n, OpenWidths *ret) {
        OpenWidths widths = {};
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++) {
                r = widen(&widths.binding, windows->windows[i].binding, view->width / 3,
                          view->utf8);
                if (r >= 0)
                        r = widen(&widths.task, windows->windows[i].task, view->width / 4,
                                  view->utf8);
        }
        *ret = widths;
        return r;
}

/* "nginx.service/request    3.2s of 5ms  nginx[4711]  blocked in folio_wait_bit" */
static int write_window(const View *view, const OpenWidths *widths, const OpenWindow *window,
                        FILE *f) {
        size_t used = widths->binding + widths->task + 21;
        char length[CELL_MAX], budget[CELL_MAX];
        int r;

        (void) cell_budget(window->budget_ns, budget);
        if (view->now_ns > window->begin_ns)
                (void) cell_length(view->now_ns - window->begin_ns, length);
        else
                (void) strcpy(length, "?");
        r = put_text(view, f, window->binding, widths->binding);
        if (r < 0)
                return r;
        (void) fprintf(f, " %6s of %-6s  ", length, budget);
        r = put_text(view, f, window->task, widths->task);
        if (r >= 0 && (view->width == 0 || view->width > used)) {
                _cleanup_free_ char *where = cell_fit(
                        window->where, view->width > 0 ? view->width - used : 0, view->utf8);

                (void) fprintf(f, "  %s", where ?: "");
                r = where ? 0 : -ENOMEM;
        }
        (void) fputc('\n', f);
        return r;
}

static int write_open(const View *view, const OpenWindows *windows, FILE *f) {
        size_t n = count_open(view, windows);
        _cleanup_free_ char *title = NULL, *more = NULL;
        OpenWidths widths;
        int r;

        if (windows->n == 0)
                return 0;
        if (n < windows->n && asprintf(&more, "; the longest %zu", n) < 0)
                return -ENOMEM;
        if (asprintf(&title, "Over budget now: %zu%s", windows->n, more ?: "") < 0)
                return -ENOMEM;
        r = measure_open(view, windows, n, &widths);
        if (r < 0)
                return r;
        (void) fputc('\n', f);
        r = put_line(view, f, COLOR_TITLE, title);
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = write_window(view, &widths, windows->windows + i, f);
        return r;
}

static int write_help(const View *view, FILE *f) {
        size_t room = view_count_rows(view, &(OpenWindows) {});
        int r = 0;

        if (view->legend)
                (void) fputc('\n', f);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(key_help) && i < room; i++)
                r = put_line(view, f, "", key_help[i]);
        return r;
}

/* The last line of the screen, whatever is above it. */
static int write_last(const View *view, size_t n_rows, const OpenWindows *windows, FILE *f) {
        size_t room = view_count_rows(view, windows);

        for (; view->height > 0 && n_rows < room; n_rows++)
                (void) fputc('\n', f);
        if (view->message)
                return put_line(view, f, COLOR_PROBLEM, view->message);
        if (view->keys)
                return put_line(view, f, "",
                                "q quit  h help  r reverse  u units  sort by "
                                "v w 5 9 m c t n  +/- time");
        return 0;
}

int view_write(const View *view, const Rows *rows, const OpenWindows *windows, FILE *f) {
        static const OpenWindows none;
        size_t n = view->help              ? ELEMENTSOF(key_help)
                   : rows->n > view->first ? rows->n - view->first
                                           : 0;
        int r;

        if (view->help)
                windows = &none;
        r = write_state(view, rows, windows, f);
        if (r >= 0)
                r = write_sums(view, rows, f);
        if (r >= 0)
                r = view->help ? write_help(view, f) : write_rows(view, rows, windows, f);
        if (r >= 0)
                r = write_open(view, windows, f);
        return r < 0 ? r : write_last(view, n, windows, f);
}
