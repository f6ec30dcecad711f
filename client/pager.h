/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PAGER_H
#define PAGER_H

#include <stdbool.h>

/* A pager, between standard output and the terminal. */

typedef struct Pager {
        bool open;
        int collected; /* a memory file that is standard output meanwhile */
        int out;       /* what standard output was */
} Pager;

/*
 * Collects what is written to standard output from now on. Does nothing when standard output is no
 * terminal, or the user wants no pager.
 */
void pager_open(Pager *pager);

/*
 * Shows what was collected, in the user's pager if it does not fit on the screen, and waits until
 * the user leaves that. Returns 0 or a negative errno.
 */
int pager_close(Pager *pager);

#endif
