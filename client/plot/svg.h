/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PLOT_SVG_H
#define PLOT_SVG_H

#include "plot/plot.h"

/*
 * Writes the pictures of n bindings, one below the other, as one SVG that needs nothing else.
 * Returns 0 or -ENOMEM.
 */
int plot_write_svg(const Plot *plots, size_t n, FILE *f);

/*
 * Any text as the contents of an element of XML. Owned by the caller; NULL for want of memory.
 */
char *xml_escape(const char *text);

#endif
