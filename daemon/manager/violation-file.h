/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_VIOLATION_FILE_H
#define MANAGER_VIOLATION_FILE_H

#include "report/violation.h"

/* The number of a window as text, with the zero byte. */
#define WINDOW_ID_MAX 21

/*
 * Writes what is told of a violation to parent/violations/ID, for EnvironmentFile= of the unit
 * that looks into it, which systemd reads as root. The last 64 stay, and those of windows whose
 * numbers are used. Returns 0 or a negative errno.
 */
int violation_file_write(const char *parent, const Violation *violation, const uint64_t *used,
                         size_t n_used);

#endif
