/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The windows that are over their budget now: a violation begins one, its completion ends it. A
 * completion can be lost on its way, so that the counters of the bindings have the last word.
 */

#include "top/windows.h"

static void window_done(OpenWindow *window) {
        free(window->binding);
        free(window->unit);
        free(window->task);
        free(window->where);
}

void open_windows_done(OpenWindows *windows) {
        for (size_t i = 0; i < windows->n; i++)
                window_done(windows->windows + i);
        free(windows->windows);
        *windows = (OpenWindows) {};
}

static int copy_window(const OpenWindow *window, OpenWindow *ret) {
        OpenWindow copy = *window;

        copy.binding = strdup(window->binding);
        copy.unit = strdup(window->unit);
        copy.task = strdup(window->task);
        copy.where = strdup(window->where);
        if (!copy.binding || !copy.unit || !copy.task || !copy.where) {
                window_done(&copy);
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

static void remove_at(OpenWindows *windows, size_t i) {
        window_done(windows->windows + i);
        windows->n--;
        memmove(windows->windows + i, windows->windows + i + 1,
                (windows->n - i) * sizeof(*windows->windows));
}

int open_windows_add(OpenWindows *windows, const OpenWindow *window) {
        OpenWindow copy;
        size_t place = 0;

        for (size_t i = 0; i < windows->n; i++) {
                if (windows->windows[i].id == window->id)
                        return 0;
                if (windows->windows[i].begin_ns <= window->begin_ns)
                        place = i + 1;
        }
        if (place == OPEN_WINDOWS_MAX)
                return 0;
        if (!windows->windows) {
                windows->windows = calloc(OPEN_WINDOWS_MAX, sizeof(*windows->windows));
                if (!windows->windows)
                        return -ENOMEM;
        }
        if (copy_window(window, &copy) < 0)
                return -ENOMEM;
        if (windows->n == OPEN_WINDOWS_MAX)
                remove_at(windows, windows->n - 1);
        memmove(windows->windows + place + 1, windows->windows + place,
                (windows->n - place) * sizeof(*windows->windows));
        windows->windows[place] = copy;
        windows->n++;
        return 0;
}

void open_windows_remove(OpenWindows *windows, uint64_t id) {
        for (size_t i = 0; i < windows->n; i++)
                if (windows->windows[i].id == id) {
                        remove_at(windows, i);
                        return;
                }
}

void open_windows_check(OpenWindows *windows, const Tallies *now) {
        for (size_t i = windows->n; i-- > 0;) {
                const Tally *tally = tallies_find(now, windows->windows[i].binding);

                if (!tally || tally->open == 0 || tally->open == UINT64_MAX)
                        remove_at(windows, i);
        }
}
