/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/*
 * The cgroup v2 hierarchy as this process sees it, also where it is mounted beside v1 ("hybrid").
 * Paths are as systemd's ControlGroup property gives them: from the root of the cgroup namespace.
 */

/*
 * Opens the root of the hierarchy. Returns a file descriptor of the caller's, or -ENOENT: not
 * mounted.
 */
int cgroup_open_root(void);

/* The id of a cgroup and its depth below the root ("/": 0). -ENOENT: there is no such cgroup. */
int cgroup_path_get_id(int root_fd, const char *path, uint64_t *ret_id, unsigned *ret_level);

/*
 * The same of a cgroup that was delegated to a user, by whoever could: its directory is his, or if
 * it is not there (*ret_id is 0 then), that of the last on its path that is. -EPERM: it is not.
 * -EINVAL: that is no such path.
 */
int cgroup_find_delegated(int root_fd, const char *path, uid_t user, uint64_t *ret_id,
                          unsigned *ret_level);

/*
 * The path of the cgroup with that id; works as long as the cgroup exists. -ENOENT, -ESTALE: it
 * does not.
 */
int cgroup_id_get_path(int root_fd, uint64_t id, char **ret_path);

/*
 * Whose CPU quota holds back who is in the cgroup at that path: the name of the only unit on the
 * path that has one. NULL: there are several, of which one holds back at a time, and the kernel
 * counts that only afterwards; or it is not a unit's, or not there any more. Returns 0 or -ENOMEM.
 */
int cgroup_path_get_limiting_unit(int root_fd, const char *path, char **ret_unit);

/*
 * The part of a path that is below root, the cgroup of a service manager: "/app.slice/x.service" of
 * "/user.slice/user-1000.slice/user@1000.service/app.slice/x.service". root "": all of it. NULL: it
 * is not below. Part of path.
 */
const char *cgroup_path_below(const char *root, const char *path);

/*
 * The innermost unit of the system manager in a path: "nginx.service" in
 * "/system.slice/nginx.service/worker", "user@1000.service" for all below it. Of another manager,
 * if path is what is below its root. -ENXIO: in no unit.
 */
int cgroup_path_get_unit(const char *path, char **ret_unit);

/*
 * The name that the cgroups of all instances of a template have in common: "foo@.service" from
 * "/a.slice/foo@x.service", or from "/a.slice/foo@.service". -EINVAL: it is no instance's path.
 */
int cgroup_path_get_template(const char *path, char **ret_name);

/* How deep below the root it is ("/": 0). */
unsigned cgroup_path_get_level(const char *path);

/*
 * Where systemd puts the cgroup of a unit that is in that slice (NULL for a slice, whose name says
 * it), below its own root. Returns 0 or -ENOMEM.
 */
int cgroup_path_of_unit(const char *slice, const char *unit, char **ret_path);

#endif
