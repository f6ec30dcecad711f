/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "suggest/members.h"

#include <stdio.h>

void members_done(Members *members) {
        free(members->items);
        members->items = NULL;
        members->n = 0;
}

bool line_is_in_cgroup(const char *line, const char *cgroup) {
        size_t n = strlen(cgroup);

        if (strncmp(line, "0::", 3) != 0 || strncmp(line + 3, cgroup, n) != 0)
                return false;
        return line[3 + n] == '\n' || line[3 + n] == '/' || line[3 + n] == '\0';
}

static bool look(pid_t pid, const char *cgroup) {
        _cleanup_fclose_ FILE *f = NULL;
        _cleanup_free_ char *line = NULL;
        char path[64];
        size_t size = 0;

        (void) snprintf(path, sizeof(path), "/proc/%i/cgroup", pid);
        f = fopen(path, "re");
        while (f && getline(&line, &size, f) > 0)
                if (line_is_in_cgroup(line, cgroup))
                        return true;
        return false;
}

bool members_have(Members *members, pid_t pid) {
        bool is_in;
        Member *items;

        for (size_t i = 0; i < members->n; i++)
                if (members->items[i].pid == pid)
                        return members->items[i].is_in;
        is_in = look(pid, members->cgroup);
        items = reallocarray(members->items, members->n + 1, sizeof(*items));
        if (items) {
                members->items = items;
                items[members->n++] = (Member) { pid, is_in };
        }
        return is_in;
}
