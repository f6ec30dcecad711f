/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef WRAP_H
#define WRAP_H

#include <stddef.h>

/*
 * A text as lines of at most width characters, with newlines between them: they end at a space,
 * which goes, or behind what joins the parts of a name, or where there is neither anywhere. The
 * caller frees it; NULL for want of memory. The text has no newlines, and width is not 0.
 */
char *text_wrap(const char *text, size_t width);

#endif
