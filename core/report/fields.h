/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef REPORT_FIELDS_H
#define REPORT_FIELDS_H

#include <sys/uio.h>

#include "report/violation.h"

/* What is told of a violation, as "NAME=value": in journal entries, and in files for units. */

#define FIELDS_MAX 40

typedef struct Fields {
        struct iovec items[FIELDS_MAX]; /* strings, owned; iov_len without the zero byte */
        size_t n;
        int error; /* the first one: adding goes on as if nothing was */
} Fields;

void fields_done(Fields *fields);

void fields_add(Fields *fields, const char *format, ...) _printf_(2, 3);

/* Those of tlobd(8) that begin with "TLOB_", but for the texts of the catalog. */
void fields_add_violation(Fields *fields, const Violation *violation);

/*
 * The same, and the sentence as TLOB_MESSAGE=, as a file that EnvironmentFile= of systemd reads.
 * Owned by the caller; NULL for want of memory.
 */
char *violation_to_environment(const Violation *violation);

#endif
