/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef UNIT_FILES_H
#define UNIT_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "unit/pattern.h"

/*
 * Which files below systemd's directories of units have sections for us, and which units they can
 * be for. What of it is a unit's, and in which order, is systemd's to say: see unit.c.
 */

typedef struct UnitFiles UnitFiles;

int unit_files_new(UnitFiles **ret);
UnitFiles *unit_files_free(UnitFiles *files);
DEFINE_CLEANUP(UnitFiles, unit_files_free);

/*
 * Begins to look through directories (NULL after the last), anew if it is doing so already. What
 * was found before holds until unit_files_step() has returned 0. Returns 0 or -ENOMEM.
 */
int unit_files_begin(UnitFiles *files, const char *const *directories);

/*
 * Looks at n more entries of directories. Returns 1 if there are more, 0 when done, or a negative
 * errno: what was found before holds on, as a directory cannot be read, or for want of memory. A
 * file is opened only if it was not seen before, or has changed.
 */
int unit_files_step(UnitFiles *files, unsigned n);

/* Has the file sections for us? Looks at it, if the last step did not. A missing file has none. */
bool unit_files_has_sections(UnitFiles *files, const char *path);

/*
 * Has any file changed, come or gone that could be a unit's, with sections or not, since this was
 * asked?
 */
bool unit_files_take_changed(UnitFiles *files);

/* Could the unit have sections in the files that were found? Templates are no units. */
bool unit_files_match(const UnitFiles *files, const char *unit);

/*
 * Calls f for each unit file and template that was found, and that a file for many, but not for a
 * whole type, could be for, until it returns less than 0. Returns what f did.
 */
int unit_files_for_each(UnitFiles *files, int (*f)(const char *name, void *userdata),
                        void *userdata);

/*
 * The patterns of the files that were found, without duplicates. Owned by files, until the next
 * step.
 */
const UnitPattern *unit_files_patterns(const UnitFiles *files, size_t *ret_n);

#endif
