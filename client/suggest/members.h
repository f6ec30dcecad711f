/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUGGEST_MEMBERS_H
#define SUGGEST_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* The processes in a cgroup, and in those below it. */

typedef struct Member {
        pid_t pid;
        bool is_in;
} Member;

typedef struct Members {
        const char *cgroup; /* the path, as systemd says it; not owned */
        Member *items;      /* those that were asked about */
        size_t n;
} Members;

void members_done(Members *members);

/* A process that is asked about again is where it was. One that has ended is in no cgroup. */
bool members_have(Members *members, pid_t pid);

/* Is it the line of /proc/PID/cgroup of a process in that cgroup of the v2 hierarchy? */
bool line_is_in_cgroup(const char *line, const char *cgroup);

#endif
