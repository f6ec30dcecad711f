/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Text and numbers for a screen on which each thing has its place. The width of a character is the
 * C library's word, by the locale: a name of a task can be in any script. A character that the
 * locale does not have counts as one column, and is shown as "?".
 */

#include "top/cell.h"

#include <math.h>
#include <wchar.h>

#include "base/duration.h"
#include "base/sentence.h"

/* Of the character at text: its bytes, and its columns. */
static size_t measure_character(const char *text, size_t *ret_columns) {
        mbstate_t state = {};
        wchar_t c;
        size_t n = mbrtowc(&c, text, strlen(text), &state);
        int columns;

        if (n == 0 || n > strlen(text)) {
                *ret_columns = 1;
                return 1;
        }
        columns = wcwidth(c);
        *ret_columns = columns < 0 ? 1 : (size_t) columns;
        return n;
}

size_t cell_width(const char *text) {
        size_t sum = 0;

        for (size_t columns; *text != '\0'; sum += columns)
                text += measure_character(text, &columns);
        return sum;
}

/* The bytes of those characters that have no more columns. */
static size_t measure_head(const char *text, size_t room) {
        size_t end = 0;

        for (size_t columns; text[end] != '\0'; room -= columns) {
                size_t n = measure_character(text + end, &columns);

                if (columns > room)
                        break;
                end += n;
        }
        return end;
}

/* Where the rest begins that has no more columns. */
static size_t measure_tail(const char *text, size_t room) {
        size_t begin = 0, sum = cell_width(text);

        for (size_t columns; sum > room; sum -= columns)
                begin += measure_character(text + begin, &columns);
        return begin;
}

/* A byte of another character set could be taken for anything. */
static void make_ascii(char *text) {
        char *to = text;

        for (const char *from = text; *from != '\0'; from++) {
                unsigned char c = (unsigned char) *from;

                if (c < 0x80)
                        *to++ = *from;
                else if ((c & 0xc0) != 0x80)
                        *to++ = '?';
        }
        *to = '\0';
}

char *cell_fit(const char *text, size_t width, bool utf8) {
        _cleanup_free_ char *escaped = text_escape(text);
        size_t head;
        char *cut;

        if (!escaped)
                return NULL;
        if (!utf8)
                make_ascii(escaped);
        if (width == 0 || cell_width(escaped) <= width)
                return TAKE_PTR(escaped);
        head = measure_head(escaped, (width - 1) / 3);
        return asprintf(&cut, "%.*s%s%s", (int) head, escaped, utf8 ? "\u2026" : "~",
                        escaped + measure_tail(escaped, width - 1 - (width - 1) / 3)) < 0
                       ? NULL
                       : cut;
}

char *cell_rate(double per_sec, char buf[static CELL_MAX]) {
        static const struct {
                double below, unit;
                int digits;
                const char *suffix;
        } steps[] = {
                { 0.00001, 1, 0, "" },   { 0.095, 1, 2, "" },       { 9.95, 1, 1, "" },
                { 999.5, 1, 0, "" },     { 9950, 1e3, 1, "k" },     { 999500, 1e3, 0, "k" },
                { 9.95e6, 1e6, 1, "M" }, { INFINITY, 1e6, 0, "M" },
        };
        size_t i = 0;

        if (!(per_sec >= 0))
                return strcpy(buf, "-");
        while (i < ELEMENTSOF(steps) - 1 && per_sec >= steps[i].below)
                i++;
        (void) snprintf(buf, CELL_MAX, "%.*f%s", steps[i].digits, per_sec / steps[i].unit,
                        steps[i].suffix);
        return buf;
}

char *cell_length(uint64_t ns, char buf[static CELL_MAX]) {
        char time[DURATION_MAX];

        if (ns == UINT64_MAX)
                return strcpy(buf, "-");
        if (ns >= NSEC_PER_MINUTE) {
                double minutes = (double) ns / (double) NSEC_PER_MINUTE;

                (void) snprintf(buf, CELL_MAX, minutes < 9.95 ? "%.1fmin" : "%.0fmin", minutes);
        } else
                (void) snprintf(buf, CELL_MAX, "%s", duration_format_short(ns, time));
        return buf;
}

/* As it was written, if that is short. */
char *cell_budget(uint64_t ns, char buf[static CELL_MAX]) {
        char exact[DURATION_MAX];

        if (ns == UINT64_MAX)
                return strcpy(buf, "-");
        return strlen(duration_format(ns, exact)) <= 6 ? strcpy(buf, exact) : cell_length(ns, buf);
}

char *cell_cpu(double cpus, char buf[static CELL_MAX]) {
        double percent = 100 * cpus;

        if (!(percent >= 0))
                return strcpy(buf, "-");
        if (percent <= 0)
                return strcpy(buf, "0%");
        if (percent < 0.01)
                return strcpy(buf, "<.01%");
        (void) snprintf(buf, CELL_MAX,
                        percent < 9.995   ? "%.2f%%"
                        : percent < 99.95 ? "%.1f%%"
                                          : "%.0f%%",
                        percent);
        return buf;
}

const char *cell_state(enum tlob_state state, bool utf8) {
        static const char *const blocks[] = {
                [TLOB_RUNNING] = "\u2588",
                [TLOB_WAITING] = "\u2592",
                [TLOB_SLEEPING] = "\u2591",
                [TLOB_N_STATES] = " ",
        };
        static const char *const letters[] = {
                [TLOB_RUNNING] = "R",
                [TLOB_WAITING] = "w",
                [TLOB_SLEEPING] = ".",
                [TLOB_N_STATES] = " ",
        };

        return (utf8 ? blocks : letters)[state];
}

void cell_bar(const double share[static TLOB_N_STATES], size_t width, enum tlob_state *ret) {
        size_t places[TLOB_N_STATES] = {}, sum = 0, at = 0;
        unsigned most = 0;

        for (unsigned i = 0; i < TLOB_N_STATES; i++) {
                if (share[i] > share[most])
                        most = i;
                if (share[i] > 0)
                        places[i] = (size_t) (share[i] * (double) width + 0.5);
                if (share[i] > 0.005 && places[i] == 0)
                        places[i] = 1;
                sum += places[i];
        }
        /* What rounding has added or lost is taken from where it is seen least. */
        if (sum > 0)
                places[most] = places[most] + width > sum ? places[most] + width - sum : 0;
        for (unsigned i = 0; i < TLOB_N_STATES; i++)
                for (size_t k = 0; k < places[i] && at < width; k++)
                        ret[at++] = i;
        while (at < width)
                ret[at++] = TLOB_N_STATES;
}
