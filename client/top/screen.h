/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

/* The terminal, as a screen that is drawn again and again. */

typedef struct Screen {
        bool is_open;
        bool has_keys; /* standard input is a terminal, too */
        struct termios before;
} Screen;

/* Can there be one? */
bool screen_is_possible(void);

/*
 * Shows an empty screen of its own, and takes keys one by one. Returns 0 or a negative errno, and
 * then nothing has changed.
 */
int screen_open(Screen *screen);

/* Everything is again as it was. Does nothing if it is not open. */
void screen_close(Screen *screen);

/* How many columns and lines can be written to. */
void screen_measure(size_t *ret_width, size_t *ret_height);

/* Replaces what is shown by these lines, as many as fit. Returns 0 or a negative errno. */
int screen_draw(const char *text, size_t height);

#endif
