/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef JOINED_H
#define JOINED_H

#include <stdbool.h>

/* A mark "joined" that is measured without traps, apart from those that are not. */

void joined_loop(unsigned n);

/* Does its next window take no trap? */
bool joined_is_quick(void);

/* Two looks at the clock, n times. */
void joined_clock(unsigned n);

#endif
