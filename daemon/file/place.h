/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILE_PLACE_H
#define FILE_PLACE_H

/*
 * What hangs together with a path, without touching it: the mount that it seems to be on; for the
 * root's own file system, its directory, since links may lead anywhere. NULL for want of memory, or
 * for a path without a directory.
 */
char *file_place(const char *path);

#endif
