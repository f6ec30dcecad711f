/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PLOT_TEXT_H
#define PLOT_TEXT_H

#include "plot/plot.h"

/* Pictures made of characters. */

typedef struct TextStyle {
        size_t width; /* columns */
        bool colors, utf8;
} TextStyle;

/* Writes the pictures of a binding. Returns 0 or -ENOMEM. */
int plot_write_text(const Plot *plot, const TextStyle *style, FILE *f);

#endif
