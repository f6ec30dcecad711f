/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef JOINED_H
#define JOINED_H

#include <stdbool.h>
#include <stdint.h>

/* Marks that are measured without traps, apart from those that are not: joined, over, late. */

/* Windows of "joined". */
void joined_loop(unsigned n);
void joined_begin(void);
void joined_end(void);

/* Does the next one of this thread take no trap? */
bool joined_is_quick(void);

#define JOINED_SPIN_NS 2000

/* So long on the CPU; and the same as a window of "over". */
void joined_spin(void);
void joined_over(void);

/* A window of "late", with that in it. */
void joined_late(void (*work)(void));

/* Two looks at the clock, n times. */
void joined_clock(unsigned n);

#endif
