/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MONITOR_LINE_H
#define MONITOR_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

/* One line in the syntax of the file "monitor" of the kernel's tlob monitor. */
typedef struct MonitorLine {
        bool remove;        /* "-...", else "p..." */
        char *name;         /* of "p:NAME" and "-:NAME", NULL when the line has none */
        char *path;         /* absolute; NULL in "-:NAME" */
        uint64_t start;     /* offsets in the file */
        uint64_t stop;      /* unused when removing */
        uint64_t budget_ns; /* unused when removing */
} MonitorLine;

/* Tells a line from the name of a binding. It may still be wrong. */
bool monitor_line_is_add(const char *s);
bool monitor_line_is_remove(const char *s);

/*
 * Parses a line that adds or removes. Returns 0, -EINVAL, -ERANGE (the threshold), -ENOMEM; on
 * failure with a sentence in *ret_error, which the caller frees (NULL for want of memory).
 */
int monitor_line_parse(const char *s, MonitorLine *ret, char **ret_error);
void monitor_line_done(MonitorLine *line);

/*
 * The name for a binding whose line has none: "myapp-0x12a0", from the last component of the path
 * and the start offset. Always a valid name: other characters become '_', and a long component is
 * cut. Owned by the caller; NULL for want of memory.
 */
char *monitor_line_derive_name(const MonitorLine *line);

#endif
