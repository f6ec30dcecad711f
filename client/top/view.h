/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TOP_VIEW_H
#define TOP_VIEW_H

#include "top/rows.h"
#include "top/windows.h"

/* A screen of tlobctl top, as lines of text. */

typedef struct View {
        size_t width, height; /* of the screen; 0: unlimited */
        bool colors, utf8;
        bool legend;  /* titles */
        bool keys;    /* the last line says which there are */
        bool help;    /* all keys, instead of the rows */
        size_t first; /* row that is shown, of those that have no room */
        RowsOrder order;
        const char *time;    /* of day */
        const char *filter;  /* "": everything is shown */
        const char *message; /* NULL: nothing to say */
        uint64_t now_ns;     /* CLOCK_MONOTONIC; 0: it is of another machine */
} View;

/* How many rows there is room for, at least one. */
size_t view_count_rows(const View *view, const OpenWindows *windows);

/*
 * Writes it, each line with a newline, none wider and not more than there may be. Returns 0 or
 * -ENOMEM.
 */
int view_write(const View *view, const Rows *rows, const OpenWindows *windows, FILE *f);

#endif
