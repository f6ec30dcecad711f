/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef NOTE_H
#define NOTE_H

/* What people should know of something that was done all the same: "Note: ...", on stderr. */

void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
