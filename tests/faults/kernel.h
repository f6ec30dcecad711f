/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_H
#define KERNEL_H

/* What this program and the processes that it forks have put into the kernel. */

/* From now on, all that is made is noted. */
void kernel_note(void);

/* Forgets what has been noted, since it is gone. */
void kernel_forget(void);

/* Remembers how many of them there are. */
void kernel_mark(void);

/* What there is more of than then, as kernel_leftovers() returns it. */
const char *kernel_surplus(void);

/* How many programs have been loaded. */
unsigned kernel_count_loads(void);

/*
 * What of it is still there, as words for a sentence that are overwritten by the next call; NULL if
 * nothing is. What is on its way out has some seconds for that.
 */
const char *kernel_leftovers(void);

#endif
