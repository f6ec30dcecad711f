/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef UNIT_QUERY_H
#define UNIT_QUERY_H

#include <stdbool.h>

#include "base/root.h"
#include "connection.h"

/* What systemd says of a unit and its files, as "systemctl cat" asks it. */

typedef struct UnitFiles {
        char *id; /* systemd's own name of it, whatever alias was asked for; "foo@.service" too */
        char **paths; /* the fragment, then drop-ins, as systemd reads them; NULL after the last */
        bool needs_reload; /* they have changed since systemd read them */
} UnitFiles;

void unit_files_done(UnitFiles *files);

/*
 * Asks about a unit, whose name may lack ".service". Returns 0, or a negative errno after it has
 * said what is wrong: also when there is no such unit, or when it is on another machine.
 */
int unit_files_query(Connection *connection, const char *name, UnitFiles *ret);

/*
 * What systemd calls the unit that a person has named, by an alias or without ".service"; the same
 * name if systemd cannot say, or if the connection is not open. NULL for want of memory; the
 * caller's.
 */
char *unit_name_resolve(Connection *connection, const char *name);

/*
 * Returns 1 if systemd knows no such service or slice, whose complete name is *ret then, which the
 * caller frees; 0 if it does, if it cannot be asked, and for scopes, which come and go; -ENOMEM.
 */
int unit_find_missing(Connection *connection, const char *name, char **ret);

/*
 * Asks which program a service runs: that of its main process, with a remark if it is another one
 * than its first ExecStart= names; if it does not run, or is somebody else's, that one. *ret is its
 * path in *ret_root, the tree that the main process sees, or will see: that of RootDirectory=, for
 * example.
 * Returns 0, or a negative errno after it has said what is wrong. The caller frees both.
 */
int unit_program_query(Connection *connection, const char *name, Root *ret_root, char **ret);

/*
 * Asks where the cgroup of a unit is: *ret_id is the unit's own name, *ret_path its path in the
 * hierarchy. Returns 0, or a negative errno after it has said what is wrong: also if it does not
 * run. The caller frees both.
 */
int unit_cgroup_query(Connection *connection, const char *name, char **ret_id, char **ret_path);

/* The main process of a unit, by its complete name; 0: it has none, or does not run. */
uint32_t unit_main_pid_query(Connection *connection, const char *unit);

/* Has systemd read all its files again. Says what is wrong. */
int unit_files_reload(Connection *connection);

#endif
