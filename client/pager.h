/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PAGER_H
#define PAGER_H

#include <sys/types.h>

/* A pager, between standard output and the terminal. */

typedef struct Pager {
        pid_t pid; /* 0: there is none */
} Pager;

/*
 * Starts the user's pager and makes it read what is written to standard output from now on. Does
 * nothing when standard output is no terminal, or no pager can be started.
 */
void pager_open(Pager *pager);

/* Ends the output and waits until the user leaves the pager. */
void pager_close(Pager *pager);

#endif
