/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef WHOLE_FILE_H
#define WHOLE_FILE_H

#include <stdio.h>

/* Returns 0 or -ENOMEM. */
typedef int (*WholeFileWriter)(FILE *f, const void *userdata);

/* What it is for. */
typedef enum WholeFileUse {
        WHOLE_FILE_SCRAPED, /* everybody may read it, and it is soon written anew */

        /*
         * Is on the disk when that is said. Who may read it, the umask says, or the permissions and
         * the group of the file that it replaces, if that is ours.
         */
        WHOLE_FILE_KEPT,
} WholeFileUse;

/*
 * Writes text to standard output (path NULL; on a terminal, what that would obey is escaped), or
 * into a file: whoever opens that sees what was there before, or all of it. A link is replaced, and
 * not followed; but a device or a pipe is written to. A directory that is a link of another user's
 * is refused, unless it leads to what is that user's, too. The temporary file beside it has a name
 * that begins with a dot, if it has one at all. Returns 0, or a negative errno after it has said
 * what is wrong; then the file is as before, or only its name may not be on the disk.
 */
int whole_file_write(const char *path, WholeFileUse use, WholeFileWriter writer,
                     const void *userdata);

#endif
