/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_LIBRARY_H
#define ELF_LIBRARY_H

#include <stddef.h>

#include "base/root.h"

/*
 * Finds a shared library by its bare name, as the dynamic loader does for program (an absolute
 * path; NULL: one without a RUNPATH of its own): in the program's RUNPATH, in ld.so.cache, then in
 * the default directories. Only libraries for this machine count. Gives the path with links
 * resolved. Returns 0, -ENOENT, -ENOMEM.
 */
int library_find(const char *name, const char *program, char **ret_path);

/* The same as a program in that tree would find it; all paths are in there. */
int library_find_in(const Root *root, const char *name, const char *program, char **ret_path);

/*
 * The same for a library, which is loaded by others. askers: absolute paths of the file that needs
 * it, of the one that was loaded for, and so on to the program, then NULL. An RPATH of each of them
 * counts, if the first one has no RUNPATH. name can also be an absolute path.
 */
int library_find_for(const Root *root, const char *name, const char *const *askers,
                     char **ret_path);

/*
 * The few names in the ld.so.cache of that tree that come near to that one, as a list for people:
 * "" if there are none. Returns 0 or -ENOMEM.
 */
int library_near_names(const Root *root, const char *name, char **ret);

/*
 * Looks a name up in the text of an ld.so.cache. The path is owned by cache; NULL if it is not
 * there.
 */
const char *library_cache_lookup(const void *cache, size_t size, const char *name);

#endif
