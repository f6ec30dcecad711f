/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef WINDOWS_H
#define WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "caller.h"

/*
 * A process that has windows, as it is told, of a program that is in that directory from now on.
 * Daemons must not be its parents: they do not measure their children.
 */
void windows_start(const char *directory);

/* Its path. */
const char *windows_program(void);

/* Has it go through n windows which take so long. Returns whether it has. */
bool windows_run(CallerWindow window, uint32_t n, uint32_t usec);

#endif
