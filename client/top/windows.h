/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TOP_WINDOWS_H
#define TOP_WINDOWS_H

#include "top/tally.h"

/* The windows that are over their budget and have not ended, the longest first. */

#define OPEN_WINDOWS_MAX 1024 /* the shortest are left out */

typedef struct OpenWindow {
        uint64_t id;
        char *binding, *unit, *task, *where; /* owned; where is "" if it is not known */
        uint64_t budget_ns;
        uint64_t begin_ns; /* CLOCK_MONOTONIC of the machine that it is on */
} OpenWindow;

typedef struct OpenWindows {
        OpenWindow *windows;
        size_t n;
} OpenWindows;

void open_windows_done(OpenWindows *windows);

/*
 * Adds a window, unless it is there. Its strings are copied. Returns 0 or -ENOMEM, and then the
 * list is what it was.
 */
int open_windows_add(OpenWindows *windows, const OpenWindow *window);

/* It has ended. */
void open_windows_remove(OpenWindows *windows, uint64_t id);

/*
 * Those that their binding no longer counts have ended, though nobody told; of those that it cannot
 * count, nobody knows.
 */
void open_windows_check(OpenWindows *windows, const Tallies *now);

#endif
