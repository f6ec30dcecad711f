/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TOP_CELL_H
#define TOP_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/words.h"

/* What stands in one place of a screen: never wider than it is to be, whatever is in it. */

#define CELL_MAX 32 /* bytes of a number */

/* How many columns a text takes that text_escape() has made. */
size_t cell_width(const char *text);

/*
 * Any text, escaped, and cut in its middle if it has more than width columns (0: it is not cut).
 * Without utf8, in ASCII. The caller frees it; NULL for want of memory.
 */
char *cell_fit(const char *text, size_t width, bool utf8);

/* Numbers in at most six columns; "-" for what is not known. Return buf. */
char *cell_rate(double per_sec, char buf[static CELL_MAX]);
char *cell_length(uint64_t ns, char buf[static CELL_MAX]);
char *cell_budget(uint64_t ns, char buf[static CELL_MAX]);
char *cell_cpu(double cpus, char buf[static CELL_MAX]);

/* One character of a bar, for a state. */
const char *cell_state(enum tlob_state state, bool utf8);

/*
 * The state of each of width places of a bar; TLOB_N_STATES: it has none. A state that took any
 * time has a place if there are enough.
 */
void cell_bar(const double share[static TLOB_N_STATES], size_t width, enum tlob_state *ret);

#endif
