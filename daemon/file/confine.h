/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILE_CONFINE_H
#define FILE_CONFINE_H

#include <sys/types.h>

/*
 * Leaves this process, for good, what is needed to read files, and no more than that: two
 * capabilities, limits of memory, and the system calls that read. It ends when its parent does.
 * Nothing is reported: what cannot be taken away here, the daemon could do all the time.
 */
void confine_to_reading(pid_t parent);

#endif
