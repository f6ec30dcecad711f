/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef EDITOR_H
#define EDITOR_H

/*
 * Lets the user edit a file, in $SYSTEMD_EDITOR, $EDITOR, $VISUAL, or else an editor that is there.
 * Returns 0, or a negative errno after it has said what is wrong.
 */
int editor_run(const char *path);

#endif
