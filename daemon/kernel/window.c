/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sums up event_tlob: a window begins with "start", and what passes from one event of its task to
 * the next is time in the state that the first of them led to. An error ends the window here, as
 * the monitor forgets it then: later versions answer the stop of a window that is over its budget
 * with an error (EAGAIN), and say nothing of it.
 *
 * It needs every event from the start on. A window of which one may be missing is given up, because
 * a wrong breakdown would be worse than none. It knows no bindings and no budgets.
 */

#include "kernel/window.h"

#define WINDOWS_MAX 1024 /* more than the monitor has slots; by id, modulo: the latest one stays */

typedef struct Window {
        bool open;
        int id;
        enum tlob_state state;
        uint64_t since_ns; /* the last event */
        uint64_t spent_ns[TLOB_N_STATES];
} Window;

struct KernelWindows {
        KernelWindowCounters counters;
        Window items[WINDOWS_MAX];
};

int kernel_windows_new(KernelWindows **ret) {
        KernelWindows *windows;

        windows = calloc(1, sizeof(*windows));
        if (!windows)
                return -ENOMEM;
        *ret = windows;
        return 0;
}

KernelWindows *kernel_windows_free(KernelWindows *windows) {
        free(windows);
        return NULL;
}

/* False if the clock went back: an event was read after a later one. */
static bool window_account(Window *window, uint64_t time_ns) {
        if (time_ns < window->since_ns)
                return false;
        window->spent_ns[window->state] += time_ns - window->since_ns;
        window->since_ns = time_ns;
        return true;
}

static void window_begin(KernelWindows *windows, Window *window, const KernelEvent *event) {
        /* Another task's, which is lost sight of; or one that ended with its task, unseen. */
        windows->counters.cut += window->open && window->id != event->id;
        *window = (Window) {
                .open = !event->is_stop,
                .id = event->id,
                .state = event->state,
                .since_ns = event->time_ns,
        };
}

static void window_change(KernelWindows *windows, Window *window, const KernelEvent *event) {
        if (!window_account(window, event->time_ns)) {
                windows->counters.cut++;
                window->open = false;
                return;
        }
        window->state = event->state;
        window->open = !event->is_stop;
}

static bool window_end(KernelWindows *windows, Window *window, const KernelEvent *event,
                       KernelEvent *ret) {
        window->open = false;
        if (!window_account(window, event->time_ns)) {
                windows->counters.cut++;
                return false;
        }
        *ret = *event;
        ret->type = KERNEL_EVENT_DETAIL;
        ret->threshold = 0;
        memcpy(ret->spent_ns, window->spent_ns, sizeof(ret->spent_ns));
        return true;
}

bool kernel_windows_push(KernelWindows *windows, const KernelEvent *event, KernelEvent *ret) {
        Window *window = &windows->items[(unsigned) event->id % WINDOWS_MAX];
        bool open = window->open && window->id == event->id;

        switch (event->type) {
        case KERNEL_EVENT_CHANGE:
                if (event->is_start)
                        window_begin(windows, window, event);
                else if (open)
                        window_change(windows, window, event);
                return false;
        case KERNEL_EVENT_ERROR_ENV:
                if (open)
                        return window_end(windows, window, event, ret);
                windows->counters.unknown++;
                return false;
        case KERNEL_EVENT_ERROR:
                windows->counters.aborted++;
                if (open)
                        window->open = false;
                return false;
        default:
                return false;
        }
}

void kernel_windows_cut(KernelWindows *windows) {
        for (size_t i = 0; i < WINDOWS_MAX; i++) {
                windows->counters.cut += windows->items[i].open;
                windows->items[i].open = false;
        }
}

void kernel_windows_get_counters(const KernelWindows *windows, KernelWindowCounters *ret) {
        *ret = windows->counters;
}
