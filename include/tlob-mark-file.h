/* SPDX-License-Identifier: MIT */
#ifndef TLOB_MARK_FILE_H
#define TLOB_MARK_FILE_H

/*
 * Marks for programs that cannot use tlob-mark.h, because they are not compiled, or in another
 * language: a file of marks is a shared object that they load, with two functions for each name.
 * tlob-mark-file(3) explains all of this. This is what libtlob-mark.so does: it writes such files.
 */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TLOB_MARK_FILE_NAMES_MAX 1024

/*
 * Writes a file with these marks for this machine's processors; "NAME:key" is one whose windows
 * have keys. A file that is already as it should be is left alone; else a new one takes its place.
 *
 * Returns 0, or a negative errno: -EINVAL for a name that is none, or is there twice, -E2BIG for
 * too many names, -EOPNOTSUPP where there are no marks, or what the file system says. If it is a
 * name that is wrong, *ret_wrong is its index; else it is n_names. ret_wrong may be NULL.
 */
int tlob_mark_file_write(const char *path, const char *const names[], size_t n_names,
                         size_t *ret_wrong);

#ifdef __cplusplus
}
#endif

#endif
